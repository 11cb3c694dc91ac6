"""Servers that are lost and come back, on real processes."""

import sys
from pathlib import Path

import anyio
import pytest

from interceptors import ToolRef, no_progress
from seriatim.runtime.servers.news import ServerBack, ServerLost, ServersAwaited
from seriatim.runtime.servers.running import RunningServers
from seriatim.topology.models import ServerDefinition, StdioTransport
from tests.support.mcp_servers import SERVERS, calls, definition, stdio_server
from tests.support.running_servers import PLENTY, Opener, call, detail, text, until

pytestmark = pytest.mark.anyio


@pytest.fixture
def opened(tmp_path: Path) -> Opener:
    return Opener(tmp_path)


@pytest.fixture
def starts(tmp_path: Path) -> Path:
    return tmp_path / "starts"


def counted(
    starts: Path, first: str = "true", env: dict[str, str] | None = None
) -> ServerDefinition:
    """Define a server that notes each of its starts, and does something before it begins."""
    program = f'echo >> {starts}; {first}; exec "$0" "$@"'
    command = ("sh", "-c", program, sys.executable, str(SERVERS / "counting.py"))
    return definition("s", StdioTransport(command, env or {}, "."))


def count(starts: Path) -> int:
    return len(starts.read_text().splitlines())


async def test_a_server_that_died_answers_the_next_call(opened: Opener, starts: Path) -> None:
    async with opened(counted(starts)) as servers:
        for _ in range(2):
            assert await detail(call(servers, "die")) == "exited with code 1: dying as asked"
            assert text(await call(servers, "list_conventions")) == "console, card"
        assert servers.problems() == {}
        assert len(servers.tools("s")) == 15
    assert count(starts) == 3
    lost = ServerLost("s", "exited with code 1: dying as asked", retried=True)
    assert opened.news == [lost, ServerBack("s")] * 2


async def test_what_a_server_listed_is_known_while_it_is_away(
    opened: Opener, starts: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    waiting = f"test {count_of(starts)} -gt 1 && while ! test -e {gate}; do sleep 0.02; done"
    async with opened(counted(starts, waiting)) as servers:
        await detail(call(servers, "die"))
        assert len(servers.tools("s")) == 15
        assert await servers.reads_only(ToolRef("s", "echo"))
        assert not await servers.reads_only(ToolRef("s", "die"))
        gate.touch()
        assert text(await call(servers, "list_conventions")) == "console, card"


def count_of(starts: Path) -> str:
    return f"$(wc -l < {starts})"


async def test_a_server_that_fails_at_its_start_is_started_once_and_again_in_the_background(
    opened: Opener, starts: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    async with opened(counted(starts, f"test -e {gate} || exit 3")) as servers:
        assert count(starts) == 1
        assert servers.problems() == {"s": "exited with code 3"}
        assert await detail(call(servers, "echo")) == "exited with code 3"
        await until(lambda: count(starts) == 3)
        assert opened.news == [ServerLost("s", "exited with code 3", retried=True)]
        gate.touch()
        await until(lambda: opened.news[1:] == [ServerBack("s")])
        assert text(await call(servers, "list_conventions")) == "console, card"


async def test_a_server_that_dies_of_the_new_question_is_asked_it_once_in_a_run(
    opened: Opener, starts: Path
) -> None:
    async with opened(counted(starts, env={"ERA": "legacy", "PROBE": "exit"})) as servers:
        assert count(starts) == 2
        await detail(call(servers, "die"))
        assert text(await call(servers, "list_conventions")) == "console, card"
        assert count(starts) == 3


async def test_calls_fail_at_once_when_a_server_does_not_come_back(
    opened: Opener, starts: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    async with opened(counted(starts, f"test -e {gate} || exit 3")) as servers:
        gate.unlink()
        assert await detail(call(servers, "die")) == "exited with code 1: dying as asked"
        with anyio.fail_after(PLENTY):
            assert await detail(call(servers, "echo")) == "exited with code 3"
    assert [type(news) for news in opened.news] == [ServerLost]


async def test_a_call_waits_for_a_server_that_is_being_started(
    opened: Opener, starts: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    slow = counted(starts, f"while ! test -e {gate}; do sleep 0.02; done")
    results: list[str] = []

    async def ask(servers: RunningServers) -> None:
        results.append(text(await call(servers, "list_conventions")))

    async with (
        opened(slow, stdio_server("ready"), patience=0.0) as servers,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(ask, servers)
        await call(servers, "echo", server="ready")
        assert results == []
        gate.touch()
    assert results == ["console, card"]


async def test_whoever_waits_is_told_for_whom(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seriatim.runtime.servers.running.NOTICE", 0.5)
    silent = stdio_server("silent", "silent")
    async with opened(silent, stdio_server("s"), start_limit=2.0) as servers:
        assert opened.news[0] == ServersAwaited(("silent",))
        assert opened.news[1] == ServerLost("silent", "did not answer within 2 seconds", True)
        assert text(await call(servers, "list_conventions")) == "console, card"


async def test_a_cancelled_body_has_its_servers_until_its_end(
    opened: Opener, tmp_path: Path
) -> None:
    file = tmp_path / "calls"
    results = []
    with anyio.CancelScope() as scope:
        async with opened(stdio_server("s", env={"CALLS_FILE": str(file)})) as servers:
            scope.cancel()
            with anyio.CancelScope(shield=True):
                await servers.call(ToolRef("s", "slow"), {"seconds": 0.5}, {}, no_progress)
                results.append(text(await call(servers, "list_conventions")))
    assert results == ["console, card"]
    assert len(calls(file)) == 2
