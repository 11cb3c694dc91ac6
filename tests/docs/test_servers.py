"""`docs/servers.md` shows what runs."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

from interceptors import PermissionDenied, refusal_text
from interceptors.execution import CHANGED
from seriatim.cli.gateway import PATIENCE as START
from seriatim.runtime.servers.connection import PATIENCE
from seriatim.runtime.servers.pauses import FIRST, LONGEST
from seriatim.runtime.servers.running import START_LIMIT
from seriatim.topology import load
from telemetry.conventions import TOOL_CHANGED_EVENT
from tests.support.documents import blocks, expect_shown, shell_environment

pytestmark = pytest.mark.timeout(240)

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "servers.md").read_text(encoding="utf-8")
FLOWING = re.sub(r"\n(> |  )?", " ", DOCUMENT)


def test_a_console_block_prints_what_it_shows(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns(".seriatim")
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=ignored)
    (block,) = blocks(DOCUMENT, "console")
    expect_shown(block, tmp_path, shell_environment())


def test_the_setting_is_one(tmp_path: Path) -> None:
    (block,) = blocks(DOCUMENT, "yaml")
    example = yaml.safe_load((ROOT / "examples/one-file/topology.yaml").read_text(encoding="utf-8"))
    file = tmp_path / "topology.yaml"
    file.write_text(yaml.safe_dump(example | yaml.safe_load(block)), encoding="utf-8")
    loaded = load(file)
    assert loaded.problems == ()
    assert loaded.workspace.settings.pin


def test_the_figures_are_those_of_the_code() -> None:
    assert (FIRST, LONGEST) == (0.25, 30)
    for text, seconds in (
        ("waits for it, up to {} seconds", PATIENCE),
        ("begins after {} seconds", START),
        ("server for up to {} seconds", START_LIMIT),
    ):
        assert text.format(f"{seconds:g}") in FLOWING


def test_the_refusal_and_the_event_are_those_of_the_code() -> None:
    assert refusal_text("get-build-convention", PermissionDenied(CHANGED)) in FLOWING
    assert TOOL_CHANGED_EVENT in DOCUMENT
