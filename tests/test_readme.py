"""The README's commands do what the README shows."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.documents import blocks, expect_shown, run_shell, shell_environment, shown

# Each test starts several processes.
pytestmark = pytest.mark.timeout(240)

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")

CONSOLE = [
    pytest.param(block, id=shown(block)[0].command[:50]) for block in blocks(README, "console")
]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    shutil.copytree(
        ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns(".seriatim")
    )
    return tmp_path


@pytest.fixture
def environment() -> dict[str, str]:
    return shell_environment()


@pytest.mark.parametrize("block", CONSOLE)
def test_a_console_block_prints_what_it_shows(
    block: str, here: Path, environment: dict[str, str]
) -> None:
    expect_shown(block, here, environment)


def test_a_yaml_block_is_part_of_an_example() -> None:
    examples = "\n".join(
        file.read_text(encoding="utf-8") for file in (ROOT / "examples").rglob("*.yaml")
    )
    for block in blocks(README, "yaml"):
        assert block in examples


def test_the_interceptor_is_the_one_of_the_example_and_takes_ten_lines() -> None:
    (block,) = blocks(README, "python")
    example = (ROOT / "examples" / "interceptor" / "budget.py").read_text(encoding="utf-8")
    assert block == example
    assert len([line for line in block.splitlines() if line]) <= 10


def test_the_harness_configuration_starts_the_gateway(
    here: Path, environment: dict[str, str]
) -> None:
    (block,) = blocks(README, "json")
    for server in json.loads(block)["mcpServers"].values():
        command = [server["command"], *server["args"]]
        seen = subprocess.run(
            [sys.executable, "examples/conventions/harness.py", *command],
            cwd=here,
            env=environment,
            capture_output=True,
            text=True,
            timeout=100,
            check=True,
        )
        assert "requires list-build-conventions" in seen.stdout


def test_the_gateway_over_http_prints_what_a_harness_needs(
    here: Path, environment: dict[str, str]
) -> None:
    (command,) = (block for block in blocks(README, "sh") if "--http" in block)
    gateway = subprocess.Popen(
        shlex.split(command.replace(":8080", ":0")),
        cwd=here,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with gateway:
        assert gateway.stdout is not None
        line = json.loads(gateway.stdout.readline())
        gateway.terminate()
    assert sorted(line) == ["agent", "expires", "id", "run", "token", "url"]


def test_a_run_with_a_model_asks_for_the_key_that_it_lacks(
    here: Path, environment: dict[str, str]
) -> None:
    (command,) = (block for block in blocks(README, "sh") if "--model" in block)
    assert "`ANTHROPIC_API_KEY`" in run_shell(command, here, environment)


def test_a_run_with_a_trace_goes_on_where_no_backend_listens(
    here: Path, environment: dict[str, str]
) -> None:
    (command,) = (block for block in blocks(README, "sh") if "OTEL_" in block)
    printed = run_shell(command.replace("4318", "1"), here, environment)
    assert "confirm with F10." in printed
    assert "1 recovery" in printed


def test_the_picture_shows_the_refusal_and_no_path_of_a_machine() -> None:
    picture = (ROOT / "docs" / "refusal.svg").read_text(encoding="utf-8")
    assert "which&#160;has&#160;not&#160;been" in picture
    assert not re.search(r"/(home|root|Users|usr|tmp|var)/", picture)


def test_every_file_that_the_readme_names_is_there() -> None:
    names = re.findall(r"\]\((?!https?:)([^)#]+)\)|src=\"([^\"]+)\"", README)
    assert [name for pair in names for name in pair if name and not (ROOT / name).exists()] == []


def test_two_commands_set_everything_up() -> None:
    demo, tests = blocks(README, "sh")[0].splitlines()
    for command in (demo, tests):
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install -q -e ")
    assert demo.endswith("&& .venv/bin/seriatim demo")
    assert tests.endswith("&& .venv/bin/python -m pytest -n auto")
