"""`docs/harnesses.md` shows what runs."""

import re
import shutil
from pathlib import Path

import pytest

from seriatim.topology import Harness
from tests.support.documents import blocks, expect_shown, run_shell, shell_environment, shown
from tests.support.harnesses import install

# Each test starts several processes.
pytestmark = pytest.mark.timeout(240)

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "harnesses.md").read_text(encoding="utf-8")
CONSOLE = [
    pytest.param(block, id=shown(block)[0].command[:40]) for block in blocks(DOCUMENT, "console")
]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    shutil.copytree(
        ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns(".seriatim")
    )
    return tmp_path


@pytest.mark.parametrize("block", CONSOLE)
def test_a_console_block_prints_what_it_shows(block: str, here: Path) -> None:
    expect_shown(block, here, shell_environment())


def test_the_known_harness_is_started_as_shown(here: Path) -> None:
    (command,) = blocks(DOCUMENT, "sh")
    environment = shell_environment()
    environment["PATH"] = f"{install(here)}:{environment['PATH']}"
    printed = run_shell(f"{command.strip()} --tell told.json", here, environment)
    assert "requires list-build-conventions" in printed
    told = (here / "told.json").read_text(encoding="utf-8")
    assert '"--model", "sonnet"' in told


def test_the_executor_is_that_of_the_example() -> None:
    (block,) = blocks(DOCUMENT, "yaml")
    example = (ROOT / "examples" / "harness" / "topology.yaml").read_text(encoding="utf-8")
    assert block in example


def test_every_harness_stands_in_the_table() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \|", DOCUMENT, re.MULTILINE)
    assert {each.value for each in Harness} - set(rows) == {Harness.ANY.value}


def test_every_file_that_the_document_names_is_there() -> None:
    names = re.findall(r"\]\((?!https?:)([^)#]+)\)", DOCUMENT)
    assert [name for name in names if not (ROOT / "docs" / name).exists()] == []
