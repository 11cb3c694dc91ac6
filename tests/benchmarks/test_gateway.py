"""The benchmark of the gateway runs to its end, and its calls get what they should."""

import json
import subprocess
import sys

import pytest

from benchmarks import gateway
from tests.support.documents import blocks
from tests.support.services import ROOT


def test_the_document_names_the_command() -> None:
    document = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    [command] = blocks(document, "sh")
    assert command == "pip install -q -e '.[benchmark]' && python -m benchmarks.gateway\n"
    assert command.strip() in str(gateway.__doc__)


@pytest.mark.timeout(180)
def test_it_measures_both_eras() -> None:
    command = [sys.executable, "-m", "benchmarks.gateway", "--format", "json"]
    done = subprocess.run(
        [*command, "--rounds", "1", "--calls", "50", "--sessions", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.keys() == {"handshake", "sessionless"}
    for era in found.values():
        assert "seriatim, rules" in era["fronts"]
        assert all(ratio > 0 for ratio in era["goals"].values())
