"""`seriatim gateway` as a harness starts it: a process, its streams, and its end."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import httpx2
import mcp_types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from interceptors import AuditRecord
from seriatim.stores.audit_log import open_audit_log
from tests.support.gateways import ADA, REFUSAL, Era, eventually, write_workspace
from tests.support.issuer import AUDIENCE, ISSUER, Issuer

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

COMMAND = [sys.executable, "-m", "seriatim", "gateway"]
BOUND = 20
"""Seconds for what takes one or two on a machine that is not busy."""


@pytest.fixture
def anyio_backend() -> str:
    """The command runs on asyncio alone, for uvicorn's sake."""
    return "asyncio"


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> Era:
    return request.param


@pytest.fixture
def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}


def rows(directory: Path) -> list[AuditRecord]:
    with open_audit_log(directory / ".seriatim" / "audit.sqlite3") as log:
        return log.records({}, until=log.end())


def text(result: mcp_types.CallToolResult) -> str:
    [block] = result.content
    assert isinstance(block, mcp_types.TextContent)
    return block.text


def servers_alive(directory: Path) -> bool:
    def alive(pid: str) -> bool:
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            return False
        return True

    return any(alive(pid) for pid in (directory / "pids").read_text().split())


@contextmanager
def started(
    *arguments: str | Path, stderr: IO[str], **options: Any
) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        **options,
    )
    try:
        with process:
            yield process
    finally:
        process.kill()


@asynccontextmanager
async def over_stdio(
    path: Path, agent: str, era: Era, stderr: IO[str], *more: str
) -> AsyncIterator[Client]:
    arguments = [*COMMAND[1:], str(path), "--agent", agent, *more]
    parameters = StdioServerParameters(command=COMMAND[0], args=arguments)
    async with Client(stdio_client(parameters, errlog=stderr), mode=era) as client:
        yield client


@asynccontextmanager
async def over_http(line: dict[str, str], era: Era) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {line['token']}"}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(line["url"], http_client=http), mode=era) as client,
    ):
        yield client


def hello(process: subprocess.Popen[bytes]) -> None:
    """Open a connection of the handshake era by hand."""
    client = {"name": "by hand", "version": "0"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    say(process, id=0, method="initialize", params=params)
    assert hear(process)["result"]["serverInfo"]["name"] == "seriatim"
    say(process, method="notifications/initialized")


def say(process: subprocess.Popen[bytes], **message: Any) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[bytes]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


async def test_an_agent_over_stdio_is_refused_recovers_and_is_on_record(
    tmp_path: Path, era: Era
) -> None:
    path = write_workspace(tmp_path)
    with (tmp_path / "stderr").open("w+") as stderr:
        async with over_stdio(path, "ada", era, stderr) as ada:
            assert [tool.name for tool in (await ada.list_tools()).tools] == ADA
            assert text(await ada.call_tool("get-convention", {})) == REFUSAL
            assert text(await ada.call_tool("list-conventions", {})) == "console, card"
            assert not (await ada.call_tool("get-convention", {})).is_error
            assert (await ada.call_tool("structured", {})).structured_content == {"n": 3}
            assert (await ada.call_tool("nope", {})).is_error
    written = rows(tmp_path)
    assert [(row.skill, row.rule) for row in written] == [
        ("get-convention", "requires"),
        ("list-conventions", None),
        ("get-convention", None),
        ("structured", None),
        ("nope", "grant"),
    ]
    assert {(row.agent, row.via, row.topology) for row in written} == {("ada", "gateway", "pair")}
    await eventually(lambda: not servers_alive(tmp_path))
    assert "Traceback" not in (tmp_path / "stderr").read_text()


async def test_progress_and_cancellation_cross_stdio(tmp_path: Path, era: Era) -> None:
    path = write_workspace(tmp_path)
    seen: list[float] = []

    async def on_progress(done: float, _total: float | None, _message: str | None) -> None:
        seen.append(done)

    with (tmp_path / "stderr").open("w+") as stderr:
        async with over_stdio(path, "ada", era, stderr) as ada:
            await ada.call_tool("progress", {"steps": 2}, progress_callback=on_progress)
            await eventually(lambda: seen == [1, 2])
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ada.call_tool, "slow", {"seconds": 60})
                calls = tmp_path / "calls.jsonl"
                await eventually(lambda: "slow" in calls.read_text())
                tasks.cancel_scope.cancel()
            await eventually((tmp_path / "calls.jsonl.cancelled").exists)
            await eventually(lambda: len(rows(tmp_path)) == 2)
    assert [(row.outcome, row.error_kind) for row in rows(tmp_path)] == [
        ("completed", None),
        ("failed", "cancelled"),
    ]


def test_a_client_that_closes_stdin_ends_the_gateway_with_exit_0(tmp_path: Path) -> None:
    path = write_workspace(tmp_path)
    with (
        (tmp_path / "stderr").open("w+") as stderr,
        started(path, "--agent", "ada", "--run", "r7", stderr=stderr) as process,
    ):
        hello(process)
        say(process, id="c1", method="tools/call", params={"name": "get-convention"})
        result = hear(process)
        assert (result["id"], result["result"]["isError"]) == ("c1", True)
        rest, _ = process.communicate(timeout=BOUND)
        assert (process.returncode, rest) == (0, b"")
    [row] = rows(tmp_path)
    assert (row.run, row.call_id) == ("r7", "c1")
    assert not servers_alive(tmp_path)
    assert (tmp_path / "stderr").read_text().splitlines() == [
        "run r7: ada is served over stdio",
        "run r7: the gateway has stopped",
    ]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_a_stdio_gateway_whose_stdin_stays_open(
    tmp_path: Path, number: signal.Signals
) -> None:
    path = write_workspace(tmp_path)
    with (
        (tmp_path / "stderr").open("w+") as stderr,
        started(path, "--agent", "ada", stderr=stderr) as process,
    ):
        hello(process)
        call = {"name": "slow", "arguments": {"seconds": 60}}
        say(process, id=1, method="tools/call", params=call)
        await eventually((tmp_path / "calls.jsonl").exists)
        process.send_signal(number)
        assert process.wait(BOUND) == 0
    [row] = rows(tmp_path)
    assert row.error_kind == "cancelled"
    assert not servers_alive(tmp_path)
    assert "Traceback" not in (tmp_path / "stderr").read_text()


async def test_a_client_that_never_reads_does_not_keep_a_signal_from_ending_the_gateway(
    tmp_path: Path,
) -> None:
    path = write_workspace(tmp_path)
    with (
        (tmp_path / "stderr").open("w+") as stderr,
        started(path, "--agent", "ada", stderr=stderr) as process,
    ):
        hello(process)
        call = {"name": "fail", "arguments": {"text": "x" * 1_000_000}}
        say(process, id=1, method="tools/call", params=call)
        await eventually(lambda: (tmp_path / "calls.jsonl").exists() and bool(rows(tmp_path)))
        process.send_signal(signal.SIGTERM)
        assert process.wait(BOUND) == 0


def test_a_line_that_is_no_message_is_answered_and_what_follows_is_served(tmp_path: Path) -> None:
    path = write_workspace(tmp_path)
    broken = [
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"x": "\\ud800"}}', 1),
        (
            b'{"jsonrpc": "2.0", "id": 2, "method": "ping", "params": {"x": ' + b"9" * 5000 + b"}}",
            2,
        ),
        (b'[{"jsonrpc": "2.0", "id": 3, "method": "ping"}]', None),
        (b"\xff\xfe", None),
    ]
    with (
        (tmp_path / "stderr").open("w+") as stderr,
        started(path, "--agent", "ada", stderr=stderr) as process,
    ):
        hello(process)
        assert process.stdin is not None
        for line, id_ in broken:
            process.stdin.write(line + b"\n")
            process.stdin.flush()
            answer = hear(process)
            assert (answer["id"], sorted(answer["error"])) == (id_, ["code", "message"])
        say(process, id=4, method="tools/call", params={"name": "echo"})
        assert hear(process)["id"] == 4
        # Without a newline, and with stdin closed behind it.
        process.stdin.write(b"hello")
        rest, _ = process.communicate(timeout=BOUND)
        assert (process.returncode, json.loads(rest)["id"]) == (0, None)
    assert "Traceback" not in (tmp_path / "stderr").read_text()


def test_what_others_print_does_not_reach_the_client(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(
        "import os\n"
        "print('printed at import')\n"
        "os.write(1, b'written at import\\n')\n"
        "def make():\n"
        "    async def interceptor(call, proceed, /):\n"
        "        print('printed in a call')\n"
        "        return await proceed(call)\n"
        "    return interceptor\n"
    )
    path = write_workspace(tmp_path, settings={"interceptors": [{"use": "loud:make"}]})
    with (
        (tmp_path / "stderr").open("w+") as stderr,
        started(path, "--agent", "ada", stderr=stderr) as process,
    ):
        hello(process)
        say(process, id=1, method="tools/call", params={"name": "echo"})
        assert hear(process)["id"] == 1
        rest, _ = process.communicate(timeout=BOUND)
        assert (process.returncode, rest) == (0, b"")
    said = (tmp_path / "stderr").read_text()
    for line in ("printed at import", "written at import", "printed in a call"):
        assert line in said


async def test_over_http_each_agent_has_a_line_a_token_and_a_standing(
    tmp_path: Path, era: Era
) -> None:
    path = write_workspace(tmp_path)
    arguments = ("--agent", "ada", "--agent", "bob", "--http", "127.0.0.1:0", "--run", "r9")
    with (
        (tmp_path / "stderr").open("w+") as stderr,
        started(path, *arguments, stderr=stderr) as process,
    ):
        lines = [await anyio.to_thread.run_sync(hear, process) for _ in range(2)]
        keys = ["agent", "expires", "id", "run", "token", "url"]
        assert [sorted(line) for line in lines] == [keys] * 2
        assert [(line["agent"], line["run"]) for line in lines] == [("ada", "r9"), ("bob", "r9")]
        async with over_http(lines[0], era) as ada, over_http(lines[1], era) as bob:
            assert len((await ada.list_tools()).tools) == len(ADA)
            await ada.call_tool("list-conventions", {})
            assert text(await bob.call_tool("get-convention", {})) == REFUSAL
            assert not (await ada.call_tool("get-convention", {})).is_error
            process.send_signal(signal.SIGTERM)
            rest, _ = await anyio.to_thread.run_sync(lambda: process.communicate(timeout=BOUND))
        assert (process.returncode, rest) == (0, b"")
    assert [(row.agent, row.run) for row in rows(tmp_path)] == [
        ("ada", "r9"),
        ("bob", "r9"),
        ("ada", "r9"),
    ]
    assert not servers_alive(tmp_path)
    said = (tmp_path / "stderr").read_text() + (
        tmp_path / ".seriatim/audit.sqlite3"
    ).read_bytes().decode(errors="replace")
    assert "Traceback" not in said
    for line in lines:
        assert line["token"] not in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_lets_a_short_call_over_http_finish_and_cancels_a_long_one(
    tmp_path: Path, era: Era, number: signal.Signals
) -> None:
    path = write_workspace(tmp_path)
    go, calls = tmp_path / "go", tmp_path / "calls.jsonl"
    finished: list[dict[str, Any]] = []

    async def work(line: dict[str, str], **arguments: Any) -> None:
        # How the client takes the end of the gateway is its own business.
        try:
            async with over_http(line, era) as ada:
                await ada.list_tools()
                await ada.call_tool("slow", {"seconds": 60, **arguments})
                finished.append(arguments)
        except* Exception:  # noqa: BLE001  the SDK has many words for it
            await anyio.lowlevel.checkpoint()

    with (
        (tmp_path / "stderr").open("w+") as stderr,
        started(path, "--agent", "ada", "--http", "127.0.0.1:0", stderr=stderr) as process,
    ):
        line = await anyio.to_thread.run_sync(hear, process)
        async with anyio.create_task_group() as clients:
            clients.start_soon(partial(work, line, until=str(go)))
            clients.start_soon(work, line)
            await eventually(lambda: calls.exists() and len(calls.read_text().splitlines()) == 2)
            process.send_signal(number)
            go.touch()
            await anyio.to_thread.run_sync(process.wait, BOUND)
            assert process.returncode == 0
    assert finished == [{"until": str(go)}]
    outcomes = sorted((row.outcome, row.error_kind) for row in rows(tmp_path))
    assert outcomes == [("completed", None), ("failed", "cancelled")]
    assert not servers_alive(tmp_path)
    assert "Traceback" not in (tmp_path / "stderr").read_text()


async def test_a_server_that_is_lost_and_back_is_told_of_once_each(tmp_path: Path) -> None:
    path = write_workspace(tmp_path)
    pids = tmp_path / "pids"
    with (tmp_path / "stderr").open("w+") as stderr:
        async with over_stdio(path, "ada", "auto", stderr, "--run", "r8") as ada:
            await ada.call_tool("list-conventions", {})
            os.kill(int(pids.read_text()), signal.SIGKILL)
            await eventually(lambda: "again\n" in (tmp_path / "stderr").read_text())
            # What had been satisfied is: the rule is about what the agent has seen.
            assert not (await ada.call_tool("get-convention", {})).is_error
    assert (tmp_path / "stderr").read_text().splitlines() == [
        "run r8: ada is served over stdio",
        "server counting is not available: was ended by SIGKILL; "
        "it is tried again in the background",
        "server counting is available again",
        "run r8: the gateway has stopped",
    ]


async def test_with_an_authorization_server_no_agent_is_named_before_it_comes(
    tmp_path: Path, era: Era
) -> None:
    issuer = Issuer()
    (tmp_path / "keys.json").write_text(issuer.jwks())
    auth = {"issuer": ISSUER, "audience": AUDIENCE, "keys": "keys.json"}
    path = write_workspace(tmp_path, settings={"auth": auth})
    with (
        (tmp_path / "stderr").open("w+") as stderr,
        started(path, "--http", "127.0.0.1:0", "--run", "r9", stderr=stderr) as process,
    ):
        line = await anyio.to_thread.run_sync(hear, process)
        assert sorted(line) == ["run", "url"]
        async with over_http(line | {"token": issuer.token("bob")}, era) as bob:
            assert text(await bob.call_tool("get-convention", {})) == REFUSAL
        process.send_signal(signal.SIGTERM)
        await anyio.to_thread.run_sync(lambda: process.communicate(timeout=BOUND))
    assert [(row.agent, row.run) for row in rows(tmp_path)] == [("bob", "r9")]


def test_a_gateway_that_is_told_to_stop_at_once_starts_nothing(tmp_path: Path) -> None:
    path = write_workspace(tmp_path)
    with (
        (tmp_path / "stderr").open("w+") as stderr,
        started(path, "--agent", "ada", stderr=stderr) as process,
    ):
        process.terminate()
        out, _ = process.communicate(timeout=BOUND)
    assert (out, (tmp_path / "stderr").read_text()) == (b"", "")
    assert not (tmp_path / "pids").exists()


async def test_a_gateway_joins_a_run_that_has_rows(tmp_path: Path) -> None:
    path = write_workspace(tmp_path)
    with (tmp_path / "stderr").open("w+") as stderr:
        for agent in ("ada", "bob"):
            async with over_stdio(path, agent, "auto", stderr, "--run", "r1") as client:
                await client.call_tool("list-conventions", {})
    assert [(row.run, row.agent) for row in rows(tmp_path)] == [("r1", "ada"), ("r1", "bob")]


async def test_a_gateway_has_no_limit_of_calls_unless_the_workspace_sets_one(
    tmp_path: Path,
) -> None:
    path = write_workspace(tmp_path, settings={"limits": {"calls": 2}})
    with (tmp_path / "stderr").open("w+") as stderr:
        async with over_stdio(path, "ada", "auto", stderr) as ada:
            results = [text(await ada.call_tool("list-conventions", {})) for _ in range(3)]
    assert results[:2] == ["console, card", "console, card"]
    assert results[2] == (
        "list-conventions was not run: this run has used its 2 calls. Finish without tools."
    )


async def test_a_server_that_does_not_start_is_said_and_its_tools_fail(tmp_path: Path) -> None:
    path = write_workspace(tmp_path)
    path.write_text(path.read_text().replace("- sh\n", "- no-such-command\n"))
    with (tmp_path / "stderr").open("w+") as stderr:
        async with over_stdio(path, "ada", "auto", stderr) as ada:
            failed = await ada.call_tool("list-conventions", {})
            assert failed.is_error
            assert "server counting is not available" in text(failed)
    assert "server counting is not available" in (tmp_path / "stderr").read_text()
