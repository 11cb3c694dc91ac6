"""The command as a process: odd streams, and what is said when the system refuses."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.gateways import write_workspace

FULL = Path("/dev/full")
COMMAND = [sys.executable, "-m", "seriatim", "validate", "--format", "json"]


@pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")
def test_a_full_disk_is_said_and_is_no_fault_of_ours(tmp_path: Path) -> None:
    with FULL.open("w") as full:
        done = subprocess.run(
            [*COMMAND, write_workspace(tmp_path)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith("error: the system refused to go on: no space left on device\n")


def test_a_reader_of_stdout_that_has_left_fails_nothing(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*COMMAND, write_workspace(tmp_path)],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_stdout_fails_nothing(tmp_path: Path) -> None:
    line = 'exec "$@" >&- <&-'
    done = subprocess.run(
        ["sh", "-c", line, "sh", *COMMAND, write_workspace(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
