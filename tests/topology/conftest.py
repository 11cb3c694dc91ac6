from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from seriatim.topology import Problem, Workspace, load, load_workspace

Write = Callable[[Mapping[str, str]], Path]
Check = Callable[[str], list[str]]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write files, by their path in a workspace, and return the workspace's directory."""

    def write_files(files: Mapping[str, str]) -> Path:
        for name, text in files.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(dedent(text), encoding="utf-8")
        return tmp_path

    return write_files


@pytest.fixture
def problems_of(write: Write) -> Callable[[str], tuple[Problem, ...]]:
    """Return the problems of a one-file workspace."""

    def problems(text: str) -> tuple[Problem, ...]:
        return load(write({"topology.yaml": text}) / "topology.yaml").problems

    return problems


@pytest.fixture
def check(problems_of: Callable[[str], tuple[Problem, ...]]) -> Check:
    """Return the problems of a one-file workspace as `LINE:COLUMN CODE`."""

    def places(text: str) -> list[str]:
        return [f"{p.at.line}:{p.at.column} {p.code}" for p in problems_of(text)]

    return places


@pytest.fixture
def workspace_of(write: Write) -> Callable[[str], Workspace]:
    """Return the workspace that one file holds."""
    return lambda text: load_workspace(write({"topology.yaml": text}) / "topology.yaml")
