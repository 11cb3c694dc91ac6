"""Every query parses by the grammar that Grafana, or Prometheus, publishes for it."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.services import ROOT, all_required, require, tools_directory

HERE: Final = ROOT / "tests" / "dashboards" / "grammars"
VARIABLES: Final = {
    "__interval_ms": "60000",
    "__interval": "1m",
    "__range": "1h",
    **dict.fromkeys(("agent", "skill", "server"), ".*"),
}


@pytest.fixture(scope="module")
def grammars() -> Path:
    """The directory in which the grammars are installed."""
    if not shutil.which("node"):
        require("node is not installed")
    directory = tools_directory() / "grammars"
    lock = "package-lock.json"
    installed = directory / "node_modules" / ".package-lock.json"
    current = installed.exists() and (directory / lock).read_bytes() == (HERE / lock).read_bytes()
    if not current:
        if not all_required():
            require(
                "the grammars are not installed: run these tests once with "
                "`SERIATIM_REQUIRE_SERVICES=1`, which installs them with npm"
            )
        _install(directory)
    return directory


def _install(directory: Path) -> None:
    if not shutil.which("npm"):
        require("npm is not installed")
    directory.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, directory)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        require(f"`npm ci` failed: {done.stderr.strip()}")


def _errors(grammars: Path, queries: Sequence[dict[str, str]]) -> list[list[int]]:
    done = subprocess.run(
        ["node", HERE / "check.cjs", grammars],
        input=json.dumps(queries),
        capture_output=True,
        text=True,
        check=True,
    )
    errors: list[list[int]] = json.loads(done.stdout)
    return errors


def test_every_query_parses(grammars: Path, queries: Sequence[Any]) -> None:
    texts = [{"language": query.language, "text": query.filled(VARIABLES)} for query in queries]
    assert {query.language for query in queries} == {"promql", "traceql"}
    for query, errors in zip(queries, _errors(grammars, texts), strict=True):
        assert not errors, f"{query.place}: an error at {errors} of {query.text}"


def test_a_broken_query_does_not_parse(grammars: Path) -> None:
    broken = [
        {"language": "promql", "text": "sum by (a (b)"},
        {"language": "traceql", "text": "{ span.a = }"},
    ]
    assert all(_errors(grammars, broken))
