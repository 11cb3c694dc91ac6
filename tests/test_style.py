"""The checkers find nothing: ruff's rules and format, and mypy's strict types."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "command",
    [("ruff", "check"), ("ruff", "format", "--check"), ("mypy",)],
    ids=["ruff check", "ruff format", "mypy"],
)
def test_the_checker_finds_nothing(command: tuple[str, ...]) -> None:
    pytest.importorskip(command[0], reason=f"{command[0]} is not installed (extra `dev`)")
    checked = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
