"""The workspaces under `examples/` are right, run, and are the ones that the demo ships."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from seriatim.demo.place import WORKSPACE

# Each test starts several processes.
pytestmark = pytest.mark.timeout(240)

EXAMPLES = Path(__file__).parents[1] / "examples"
WORKSPACES = ["conventions", "conventions/by-hand", "harness", "one-file", "interceptor"]


def seriatim(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "seriatim", *map(str, words)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=100,
    )


def place_of(workspace: Path) -> Path:
    return workspace if (workspace / "workspace.yaml").exists() else workspace / "topology.yaml"


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    return Path(
        shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns(".seriatim"))
    )


@pytest.mark.parametrize("name", WORKSPACES)
def test_an_example_has_no_problems(name: str) -> None:
    done = seriatim("validate", place_of(EXAMPLES / name))
    assert (done.returncode, done.stdout) == (0, "")


def test_the_demo_ships_the_example_itself() -> None:
    assert WORKSPACE.samefile(EXAMPLES / "conventions")


def test_the_one_file_example_refuses_and_recovers(examples: Path) -> None:
    topology = examples / "one-file" / "topology.yaml"
    script = examples / "one-file" / "agent.yaml"
    done = seriatim("run", topology, "--script", script, "--input", "console?")
    assert done.returncode == 0, done.stderr
    logs = seriatim("logs", topology).stdout
    assert logs.count("REFUSED requires") == 1
    assert logs.count("completed") == 2


def test_the_interceptor_example_refuses_the_third_call(examples: Path) -> None:
    topology = examples / "interceptor" / "topology.yaml"
    script = examples / "interceptor" / "agent.yaml"
    done = seriatim("run", topology, "--script", script, "--input", "console and label?")
    assert done.returncode == 0, done.stderr
    logs = seriatim("logs", topology).stdout
    assert logs.count("completed") == 2
    assert "REFUSED budget" in logs
    assert "The budget is used up. Finish without tools." in logs
