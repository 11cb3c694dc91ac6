"""Processes that are no good servers: what they did is said, and others do not suffer for it."""

import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from seriatim.runtime.servers.pipe import InputPipe
from seriatim.topology.models import StdioTransport
from tests.support.mcp_servers import SERVERS, definition, stdio_server
from tests.support.running_servers import PLENTY, Opener, call, detail, text, until

pytestmark = pytest.mark.anyio


@pytest.fixture
def opened(tmp_path: Path) -> Opener:
    return Opener(tmp_path)


async def test_a_line_without_an_end_is_said(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seriatim.runtime.servers.process.LONGEST_LINE", 1_000_000)
    endless = definition("s", StdioTransport(("cat", "/dev/zero"), {}, "."))
    async with opened(endless, stdio_server("good")) as servers:
        assert servers.problems() == {"s": "sent a line of more than 1000000 bytes"}
        assert text(await call(servers, "list_conventions", server="good")) == "console, card"


async def test_a_call_to_a_server_that_does_not_read_ends_at_its_time_limit(
    opened: Opener,
) -> None:
    async with opened(stdio_server("s", "deaf")) as servers:
        started = anyio.current_time()
        with anyio.move_on_after(0.5):
            await call(servers, "echo", {"text": "x" * 1_000_000})
        with anyio.move_on_after(0.5):
            await call(servers, "echo")
        # The SDK would wait for 5 seconds with each of them to tell the server.
        assert anyio.current_time() - started < 4


async def test_a_server_that_reads_nothing_is_given_up_before_it_fills_the_memory(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seriatim.runtime.servers.process.BACKLOG", 20)
    monkeypatch.setattr("seriatim.runtime.servers.process.STUCK", 0.2)
    async with opened(stdio_server("s", "deaf")) as servers, anyio.create_task_group() as tasks:
        for _ in range(30):
            tasks.start_soon(detail, call(servers, "echo", {"text": "x" * 100_000}))
        await until(lambda: bool(opened.news))
        assert opened.news[0].detail == "stopped reading its stdin"  # type: ignore[union-attr]  # it is a loss


async def test_a_server_that_asks_without_end_and_never_reads_is_given_up(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seriatim.runtime.servers.process.STUCK", 0.2)
    async with opened(stdio_server("s", "deaf", "--ask")):
        await until(lambda: bool(opened.news))
        assert opened.news[0].detail == "stopped reading its stdin"  # type: ignore[union-attr]  # it is a loss


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_server_that_floods_to_the_end_leaves_no_traceback(stream: str, tmp_path: Path) -> None:
    program = f"""
import anyio
from pathlib import Path
from seriatim.runtime.servers.running import open_servers
from tests.support.mcp_servers import stdio_server

async def main():
    server = stdio_server("s", "flood", "{stream}")
    async with open_servers([server], {{}}, Path({str(tmp_path)!r})):
        pass

anyio.run(main)
"""
    root = SERVERS.parent.parent.parent
    environment = os.environ | {"PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=50
    )
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


async def test_a_pipe_knows_whether_it_was_read() -> None:
    pipe = InputPipe()
    assert not pipe.was_read()
    await pipe.send(b"question")
    assert not pipe.was_read()
    os.read(pipe.reading_end, 3)
    assert pipe.was_read()
    pipe.close()
    assert pipe.was_read()


async def test_a_pipe_is_written_to_its_end_and_says_when_nobody_reads() -> None:
    pipe = InputPipe()
    received = []
    with anyio.fail_after(PLENTY):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pipe.send, b"x" * 1_000_000)
            while sum(map(len, received)) < 1_000_000:
                await anyio.wait_readable(pipe.reading_end)
                received.append(os.read(pipe.reading_end, 65536))
        pipe.started()
        with pytest.raises(BrokenPipeError):
            await pipe.send(b"y")
    pipe.close()
    with pytest.raises(anyio.ClosedResourceError):
        await pipe.send(b"z")
