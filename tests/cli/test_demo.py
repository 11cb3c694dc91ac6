"""`seriatim demo`, as a user runs it."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from seriatim.demo.commands import DemoError
from seriatim.demo.page import Page
from seriatim.demo.place import free_place, unpack
from seriatim.demo.story import Story

# The demo starts a dozen processes: seconds on an idle machine, and minutes on a busy one.
pytestmark = pytest.mark.timeout(240)

REFUSAL = (
    "get-build-convention requires list-build-conventions, which has not been called in this "
    "session. Call list-build-conventions first, then retry."
)


def demo(here: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    return subprocess.run(
        [sys.executable, "-m", "seriatim", "demo", *words],
        cwd=here,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=200,
    )


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def shown(here: Path) -> str:
    done = demo(here, COLUMNS="40")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def part(shown: str, number: int) -> str:
    (text,) = re.findall(rf"^{number}\. .*?(?=^{number + 1}\. |^What next|\Z)", shown, re.M | re.S)
    return str(text)


def test_a_signal_ends_the_demo_and_all_that_it_started(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "seriatim", "demo"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        assert process.stdout
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (143, "")
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_the_failure_is_shown_first(shown: str) -> None:
    text = " ".join(part(shown, 1).split())
    assert "=> list-build-conventions was called 0 times" in text
    assert REFUSAL not in text


def test_the_fix_is_four_lines_and_the_refused_agent_recovers(shown: str) -> None:
    text = part(shown, 2)
    assert len(re.findall(r"^\+.*\[.*\]$|^\+ +requires:$|^ +skills: .*$", text, re.M)) == 4
    assert text.count("REFUSED requires") == 1
    assert "=> The agent was refused" in text


def test_the_refusal_stands_unbroken_on_a_line_of_its_own_on_a_narrow_terminal(shown: str) -> None:
    assert REFUSAL in part(shown, 2).splitlines()


def test_the_harness_reads_the_same_refusal(shown: str) -> None:
    assert f'"is_error": true, "text": "{REFUSAL}"' in part(shown, 3)


def test_the_old_way_takes_more_and_its_refusal_is_not_on_record(shown: str) -> None:
    figures = {
        name: (int(by_hand), int(by_topology))
        for name, by_hand, by_topology in re.findall(
            r"^(.+?) {2,}(\d+) +(\d+)$", part(shown, 4), re.M
        )
    }
    assert figures["lines of server"][0] > figures["lines of server"][1]
    assert figures["`ack` arguments in the tools' schemas"] == (3, 0)
    assert figures["calls out of order that were stopped"] == (1, 1)
    assert figures["of these, on record as refused"] == (0, 1)


def test_the_servers_are_not_heard_and_no_colour_reaches_a_pipe(shown: str) -> None:
    assert "\x1b" not in shown
    assert "INFO" not in shown
    assert "Traceback" not in shown


def test_what_it_suggests_works_when_pasted(shown: str, here: Path) -> None:
    _, _, end = shown.partition("What next")
    commands = re.findall(r"^  (.*seriatim.*)$", end, re.M)
    assert len(commands) == 4
    for command in commands:
        done = subprocess.run(command, shell=True, cwd=here, capture_output=True, timeout=60)
        assert done.returncode == 0, (command, done.stderr)


def test_the_log_is_where_it_says(shown: str, here: Path) -> None:
    (log,) = re.findall(r"The audit log is\s+(\S+)\.\s", shown)
    assert (here / log).is_file()


def test_a_second_demo_leaves_the_first_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "seriatim-demo").mkdir()
    assert free_place() == Path("seriatim-demo-2")


def test_it_fails_where_the_order_does_not_hold(tmp_path: Path) -> None:
    place = tmp_path / "demo"
    unpack(place)
    topology = place / "topologies" / "ordered.yaml"
    lines = topology.read_text().splitlines()
    topology.write_text("\n".join(lines[: lines.index("    requires:")]) + "\n")
    with pytest.raises(DemoError, match="the agent is refused"):
        anyio.run(Story(Page(), place).tell)


def test_it_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "topology.yaml").write_text("mine")
    done = demo(tmp_path, "--dir", "mine")
    assert done.returncode == 2
    assert "`mine` is not empty" in done.stderr
    assert (tmp_path / "mine" / "topology.yaml").read_text() == "mine"
