"""Servers of every kind and fault, on real processes and sockets."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from interceptors import (
    Completed,
    Failed,
    InputRequired,
    ServerProtocolError,
    ToolError,
    ToolRef,
    no_progress,
)
from seriatim.runtime.servers.running import RunningServers
from seriatim.topology.models import ServerDefinition, StdioTransport
from tests.support.mcp_servers import (
    SERVERS,
    calls,
    definition,
    http_definition,
    stdio_server,
)
from tests.support.running_servers import ENVIRON, PLENTY, Opener, call, detail, text, until

pytestmark = pytest.mark.anyio


@pytest.fixture
def opened(tmp_path: Path) -> Opener:
    return Opener(tmp_path)


def running(pid: int) -> bool:
    """Return whether a process runs; one that is dead and waits for its parent does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def all_children() -> set[int]:
    listed = [
        pid
        for file in Path("/proc/self/task").glob("*/children")
        for pid in file.read_text().split()
    ]
    return {int(pid) for pid in listed if running(int(pid))}


Children = Callable[[], set[int]]


@pytest.fixture
def children() -> Children:
    """Return the processes that this process has started since the test began, and that run."""
    before = all_children()
    return lambda: all_children() - before


KINDS = {
    "both eras": stdio_server("s"),
    "modern": stdio_server("s", env={"ERA": "modern"}),
    "handshake": stdio_server("s", env={"ERA": "legacy"}),
    "handshake, silent to the probe": stdio_server("s", env={"ERA": "legacy", "PROBE": "hang"}),
    "handshake, dies of the probe": stdio_server("s", env={"ERA": "legacy", "PROBE": "exit"}),
    "the SDK's server": stdio_server("s", "sdk"),
    "noise on stdout": stdio_server("s", "rubbish"),
    "flood on stderr": stdio_server("s", "noisy"),
}


@pytest.mark.parametrize("server", KINDS.values(), ids=KINDS.keys())
async def test_a_server_of_any_kind_answers(server: ServerDefinition, opened: Opener) -> None:
    limit = 4.0 if "hang" in str(server.transport) else PLENTY
    async with opened(server, start_limit=limit) as servers:
        assert servers.problems() == {}
        assert text(await call(servers, "list_conventions")) == "console, card"
        echoed = json.loads(text(await call(servers, "echo", {"a": None, "b": [{"c": None}]})))
        assert echoed["arguments"] == {"a": None, "b": [{"c": None}]}
        assert text(await call(servers, "unicode")) == "naïve ☃ \u2028 \x1b[31mred\x1b[0m \x00 𝕏"


async def test_tools_are_listed_page_by_page(opened: Opener) -> None:
    async with opened(stdio_server("s", env={"PAGE": "2"})) as servers:
        tools = servers.tools("s")
        assert len(tools) == 15
        assert tools["get_convention"].input_schema["properties"] == {"name": {"type": "string"}}
        assert tools["get_convention"].annotations is not None
        assert tools["get_convention"].annotations.read_only_hint


async def test_only_calls_reach_the_server_and_each_once(opened: Opener, tmp_path: Path) -> None:
    file = tmp_path / "calls"
    async with opened(stdio_server("s", env={"CALLS_FILE": str(file), "ERA": "legacy"})) as servers:
        await call(servers, "structured")
        await servers.call(
            ToolRef("s", "echo"),
            {"x": 1},
            {"app/key": 1, "progressToken": 7, "io.modelcontextprotocol/clientInfo": {}},
            no_progress,
        )
    assert calls(file) == [
        {"tool": "structured", "arguments": {}, "meta": {}},
        {"tool": "echo", "arguments": {"x": 1}, "meta": {"app/key": 1}},
    ]


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("broken", [False, True])
async def test_a_result_is_handed_on_as_it_came(era: str, broken: bool, opened: Opener) -> None:
    async with opened(stdio_server("s", env={"ERA": era})) as servers:
        outcome = await call(servers, "structured", {"broken": broken})
        assert isinstance(outcome, Completed)
        assert outcome.result.content == ()
        assert outcome.result.fields == {
            "structuredContent": {"n": "three"} if broken else {"n": 3},
            "_meta": {"example/key": [1, None]},
        }
        picture = await call(servers, "picture")
        assert isinstance(picture, Completed)
        assert [block["type"] for block in picture.result.content] == ["image", "text"]
        assert set(picture.result.content[0]) == {"type", "data", "mimeType"}
        assert picture.result.fields == {}


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_flagged_result_is_a_tool_error(era: str, opened: Opener) -> None:
    async with opened(stdio_server("s", env={"ERA": era})) as servers:
        outcome = await call(servers, "fail", {"text": "no disk"})
        assert isinstance(outcome, Failed)
        assert isinstance(outcome.failure, ToolError)
        assert outcome.failure.result.content == ({"type": "text", "text": "no disk"},)


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("code", [-32050, -32000])
async def test_a_protocol_error_keeps_code_message_and_data(
    era: str, code: int, opened: Opener
) -> None:
    async with opened(stdio_server("s", env={"ERA": era})) as servers:
        with pytest.raises(ServerProtocolError) as caught:
            await call(servers, "raise", {"code": code, "message": "m", "data": {"k": [1]}})
        assert (caught.value.code, caught.value.message) == (code, "m")
        assert caught.value.data == ({"k": [1]},)
        with pytest.raises(ServerProtocolError) as caught:
            await call(servers, "raise", {"code": code, "message": "m"})
        assert caught.value.data == ()


async def test_a_tool_that_asks_has_not_completed(opened: Opener) -> None:
    async with opened(stdio_server("s", env={"ERA": "modern"})) as servers:
        outcome = await call(servers, "ask")
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.failure, InputRequired)
    assert outcome.failure.question["requestState"] == "s1"


async def test_what_is_not_called_cannot_be_more_than_read(opened: Opener) -> None:
    async with opened(stdio_server("s")) as servers:
        with pytest.raises(ValueError, match="tools/call does not only read"):
            await servers.read("s", "tools/call", {"name": "list_conventions"}, {})


@pytest.mark.parametrize("value", ["\ud800", float("nan"), float("inf")])
async def test_what_is_no_json_is_not_sent_and_harms_nothing(value: object, opened: Opener) -> None:
    async with opened(stdio_server("s")) as servers:
        with pytest.raises(ServerProtocolError, match="the arguments are no JSON"):
            await call(servers, "echo", {"a": value})
        assert text(await call(servers, "list_conventions")) == "console, card"


async def test_an_answer_that_is_no_valid_message_fails_at_once(opened: Opener) -> None:
    async with opened(stdio_server("s", "rubbish")) as servers:
        with anyio.fail_after(PLENTY), pytest.raises(ServerProtocolError, match="no valid"):
            await call(servers, "forge", {"text": "garble"})
        assert text(await call(servers, "list_conventions")) == "console, card"


async def test_half_a_character_costs_no_answer(opened: Opener) -> None:
    async with opened(stdio_server("s", "rubbish")) as servers:
        with anyio.fail_after(PLENTY):
            assert text(await call(servers, "forge", {"text": "surrogate"})) == "half ?"


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_progress_reaches_the_caller(era: str, opened: Opener) -> None:
    seen = []

    async def receive(done: float, total: float | None, message: str | None) -> None:
        seen.append((done, total, message))

    async with opened(stdio_server("s", env={"ERA": era})) as servers:
        await servers.call(ToolRef("s", "progress"), {"steps": 2}, {}, receive)
        await until(lambda: len(seen) == 2)
    assert sorted(seen) == [(1, 2, "step 1"), (2, 2, "step 2")]


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_cancelled_call_is_cancelled_at_the_server(
    era: str, opened: Opener, tmp_path: Path
) -> None:
    file = tmp_path / "calls"
    async with opened(stdio_server("s", env={"ERA": era, "CALLS_FILE": str(file)})) as servers:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, servers, "slow")
            await until(lambda: len(calls(file)) == 1)
            tasks.cancel_scope.cancel()
        await until(lambda: len(calls(Path(f"{file}.cancelled"))) == 1)


async def test_calls_run_side_by_side(opened: Opener, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with opened(stdio_server("s")) as servers, anyio.create_task_group() as tasks:
        tasks.start_soon(call, servers, "slow", {"until": str(gate)})
        assert text(await call(servers, "list_conventions")) == "console, card"
        gate.touch()


# Servers that are no use.


async def test_a_server_that_dies_in_a_call_says_how(opened: Opener, tmp_path: Path) -> None:
    async with opened(stdio_server("s"), stdio_server("other")) as servers:
        last = "exited with code 4: out of \\x1b[31mmemory"
        arguments = {"code": 4, "text": "first\nout of \x1b[31mmemory"}
        assert await detail(call(servers, "die", arguments)) == last
        assert text(await call(servers, "list_conventions", server="other")) == "console, card"
        log = (tmp_path / ".seriatim/servers/s.log").read_text()
        assert log == "first\nout of \x1b[31mmemory\n"


async def test_every_call_under_way_ends_with_the_server(
    opened: Opener, children: Children, tmp_path: Path
) -> None:
    file = tmp_path / "calls"
    details = []

    async def wait(servers: RunningServers) -> None:
        details.append(await detail(call(servers, "slow")))

    async with opened(stdio_server("s", env={"CALLS_FILE": str(file)})) as servers:
        with anyio.fail_after(PLENTY):
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(wait, servers)
                await until(lambda: len(calls(file)) == 3)
                (pid,) = children()
                os.kill(pid, signal.SIGKILL)
    assert details == ["was ended by SIGKILL"] * 3


async def test_servers_that_do_not_start_say_why_and_harm_no_other(opened: Opener) -> None:
    environ = ENVIRON | {"TOKEN": "s3cret-token"}
    async with opened(
        stdio_server("good"),
        stdio_server("silent", "silent"),
        stdio_server("exits", "exits"),
        stdio_server("tells", "exits", "the token is ${TOKEN}"),
        stdio_server("lacks", env={"KEY": "${GONE}"}),
        definition("absent", StdioTransport(("no-such-command",), {}, ".")),
        definition("nowhere", StdioTransport(("python",), {}, "no/such/directory")),
        definition("hidden", StdioTransport(("${TOKEN}/bin/server",), {}, ".")),
        http_definition("refused", "http://127.0.0.1:9/mcp"),
        http_definition("no url", "nonsense"),
        environ=environ,
        start_limit=3.0,
    ) as servers:
        problems = dict(servers.problems())
        assert problems.pop("refused").startswith("no answer over HTTP: ")
        assert problems.pop("no url").startswith("no answer over HTTP: ")
        assert problems == {
            "silent": "did not answer within 3 seconds",
            "exits": "exited with code 3: cannot open the database",
            "tells": "exited with code 3: the token is [redacted]",
            "lacks": "`env.KEY` needs the environment variable `GONE`, which is not set",
            "absent": "cannot be started: No such file or directory: `no-such-command`",
            "nowhere": "cannot be started: No such file or directory: `no/such/directory`",
            "hidden": "cannot be started: No such file or directory: `${TOKEN}/bin/server`",
        }
        assert servers.secrets == {"s3cret-token"}
        assert servers.tools("absent") == {}
        assert await detail(call(servers, "x", server="absent")) == servers.problems()["absent"]
        assert text(await call(servers, "list_conventions", server="good")) == "console, card"


async def test_a_server_that_nobody_defined_is_unavailable(opened: Opener) -> None:
    async with opened() as servers:
        assert await detail(call(servers, "x")) == "it is none of the servers of this run"
        assert servers.tools("s") == {}


async def test_calls_after_the_end_are_answered(opened: Opener) -> None:
    async with opened(stdio_server("s")) as servers:
        pass
    assert await detail(call(servers, "echo")) == "it was stopped"


# What a process is given.


async def test_a_process_gets_no_variable_that_nobody_named(opened: Opener, tmp_path: Path) -> None:
    script = "import os, sys, json; sys.exit(json.dumps(sorted(os.environ)))"
    server = definition("s", StdioTransport((sys.executable, "-c", script), {"MINE": "1"}, "."))
    async with opened(server, environ=ENVIRON | {"HOME": "/", "SECRET": "x"}) as servers:
        said = servers.problems()["s"].partition(": ")[2]
    assert set(json.loads(said)) - {"LC_CTYPE"} == {"HOME", "MINE", "PATH"}


async def test_a_process_starts_in_the_workspace(opened: Opener, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    script = "import os, sys; sys.exit(os.getcwd())"
    servers_ = [
        definition(cwd, StdioTransport((sys.executable, "-c", script), {}, cwd))
        for cwd in (".", "sub", "/")
    ]
    async with opened(*servers_) as servers:
        places = {server: said.partition(": ")[2] for server, said in servers.problems().items()}
    assert places == {".": str(tmp_path), "sub": str(tmp_path / "sub"), "/": "/"}


# The end.


async def test_nothing_is_left_after_leaving(
    opened: Opener, children: Children, tmp_path: Path
) -> None:
    file = tmp_path / "child"
    family = stdio_server("family", "parent", env={"CHILD_FILE": str(file)})
    async with opened(family, stdio_server("s")):
        assert len(children()) == 2
    assert children() == set()
    assert not running(int(file.read_text()))


async def test_nothing_is_left_of_a_server_that_died(opened: Opener, tmp_path: Path) -> None:
    file = tmp_path / "child"
    async with opened(stdio_server("s", "parent", env={"CHILD_FILE": str(file)})) as servers:
        await detail(call(servers, "die"))
        assert not running(int(file.read_text()))


async def test_nothing_is_left_after_an_exception(opened: Opener, children: Children) -> None:
    with pytest.raises(LookupError, match="mine"):
        async with opened(stdio_server("s")):
            raise LookupError("mine")
    assert children() == set()


async def test_nothing_is_left_after_a_cancellation(opened: Opener, children: Children) -> None:
    with anyio.CancelScope() as scope:
        async with opened(stdio_server("s")) as servers, anyio.create_task_group() as tasks:
            tasks.start_soon(call, servers, "slow")
            scope.cancel()
            await anyio.sleep_forever()
    assert children() == set()


async def test_a_start_that_is_cancelled_leaves_nothing(opened: Opener, children: Children) -> None:
    with anyio.move_on_after(0.5) as scope:
        async with opened(stdio_server("s", "silent", "--stubborn")):
            pytest.fail("it cannot have answered")
    assert scope.cancelled_caught
    assert children() == set()


async def test_a_process_that_ignores_the_request_to_end_is_killed(
    opened: Opener, children: Children
) -> None:
    async with opened(stdio_server("s", "silent", "--stubborn"), start_limit=1.0) as servers:
        assert servers.problems() == {"s": "did not answer within 1 seconds"}
    assert children() == set()


def test_the_sdk_writes_nothing_to_the_terminal(tmp_path: Path) -> None:
    program = f"""
import anyio
from pathlib import Path
from interceptors import ToolRef, no_progress
from seriatim.runtime.servers.running import open_servers
from seriatim.topology.models import StdioTransport
from tests.support.mcp_servers import definition, http_definition, stdio_server

async def main():
    servers = [stdio_server("s", "rubbish"), http_definition("h", "http://127.0.0.1:9")]
    async with open_servers(servers, {{}}, Path({str(tmp_path)!r})) as running:
        await running.call(ToolRef("s", "echo"), {{}}, {{}}, no_progress)

anyio.run(main)
"""
    root = SERVERS.parent.parent.parent
    environment = os.environ | {"PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=50
    )
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
