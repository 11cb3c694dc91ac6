"""The gateway: what a harness sees of its agent's tools, in both eras of MCP.

Each behaviour over a real socket, and with the one registration that stdio has.
"""

import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import mcp_types
import pytest
from mcp import Client, MCPError

from interceptors import AuditRecord, MemoryAuditSink
from seriatim.runtime.gateway.registrations import Registration
from tests import support
from tests.support.gateways import (
    ADA,
    BOB,
    REFUSAL,
    Era,
    Gateway,
    eventually,
    running,
    serving,
    write_workspace,
)

pytestmark = pytest.mark.anyio

Connect = Callable[[str], AbstractAsyncContextManager[Client]]


@pytest.fixture
def anyio_backend() -> str:
    """uvicorn runs on asyncio alone."""
    return "asyncio"


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    audit = MemoryAuditSink()
    async with (
        running(write_workspace(tmp_path), audit) as run,
        serving(run, audit) as gateway,
    ):
        yield gateway


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> Era:
    return request.param


@pytest.fixture(params=["http", "streams"])
def connect(request: pytest.FixtureRequest, gateway: Gateway, era: Era) -> Connect:
    way = gateway.over_http if request.param == "http" else gateway.over_streams
    return lambda agent: way(agent, era)


def text(result: mcp_types.CallToolResult) -> str:
    [block] = result.content
    assert isinstance(block, mcp_types.TextContent)
    return block.text


def calls(directory: Path) -> list[str]:
    """Return the tools that reached the server, in order."""
    path = directory / "calls.jsonl"
    if not path.exists():
        return []
    return [json.loads(line)["tool"] for line in path.read_text().splitlines()]


async def test_an_agent_sees_its_own_tools_under_skill_ids(connect: Connect) -> None:
    async with connect("ada") as ada, connect("bob") as bob:
        assert [tool.name for tool in (await ada.list_tools()).tools] == ADA
        tools = (await bob.list_tools()).tools
        assert [tool.name for tool in tools] == ["list-conventions", "get-convention"]
        assert tools[1].description == "Gets one build convention."
        assert tools[1].input_schema["properties"] == {"name": {"type": "string"}}


async def test_many_tools_are_listed_on_one_page(tmp_path: Path, era: Era) -> None:
    names = [f"tool-{number}" for number in range(600)]
    server = Path(support.__file__).parent / "servers" / "any_tools.py"
    command = {"id": "any", "command": [sys.executable, str(server)]}
    workspace = {
        "metadata": {"name": "pair"},
        "mcp_servers": [{**command, "env": {"TOOLS": ",".join(names)}}],
        "skills": [{"id": name, "server": "any", "tool": name} for name in names],
        "agents": {"root": {"id": "ada", "role": "root", "skills": names}},
    }
    file = tmp_path / "many.yaml"
    file.write_text(json.dumps(workspace), encoding="utf-8")
    audit = MemoryAuditSink()
    async with (
        running(file, audit) as run,
        serving(run, audit) as gateway,
        gateway.over_streams("ada", era) as ada,
    ):
        page = await ada.list_tools()
        assert [tool.name for tool in page.tools] == names
        assert page.next_cursor is None
        with pytest.raises(MCPError) as caught:
            await ada.list_tools(cursor="2")
    assert caught.value.code == mcp_types.INVALID_PARAMS


async def test_a_guarded_call_is_refused_until_its_prerequisite_has_succeeded(
    connect: Connect, tmp_path: Path, gateway: Gateway
) -> None:
    async with connect("ada") as ada:
        refused = await ada.call_tool("get-convention", {"name": "card"})
        assert (refused.is_error, text(refused)) == (True, REFUSAL)
        assert calls(tmp_path) == []
        listed = await ada.call_tool("list-conventions", {})
        assert (listed.is_error, text(listed)) == (False, "console, card")
        got = await ada.call_tool("get-convention", {"name": "card"})
        assert (got.is_error, text(got)) == (False, "Cards have one button.")
    assert [(row.policy_decision, row.rule, row.via) for row in gateway.audit.records] == [
        ("deny", "requires", "gateway"),
        ("allow", None, "gateway"),
        ("allow", None, "gateway"),
    ]


async def test_a_refusal_of_a_tool_with_an_output_schema_shows_its_text(connect: Connect) -> None:
    async with connect("ada") as ada:
        await ada.list_tools()
        refused = await ada.call_tool("structured", {})
        assert refused.is_error
        assert text(refused) == (
            "structured requires get-convention, which has not been called in this session. "
            "Call list-conventions, then get-convention first, then retry."
        )


async def test_a_sibling_agents_call_does_not_satisfy(connect: Connect) -> None:
    async with connect("ada") as ada, connect("bob") as bob:
        await ada.call_tool("list-conventions", {})
        refused = await bob.call_tool("get-convention", {})
        assert (refused.is_error, text(refused)) == (True, REFUSAL)


async def test_a_second_connection_of_the_same_agent_has_the_same_standing(
    connect: Connect,
) -> None:
    async with connect("ada") as first:
        await first.call_tool("list-conventions", {})
    async with connect("ada") as second:
        assert not (await second.call_tool("get-convention", {})).is_error


async def test_an_unknown_tool_is_a_refusal_and_an_audited_denial(
    connect: Connect, gateway: Gateway, tmp_path: Path
) -> None:
    async with connect("bob") as bob:
        refused = await bob.call_tool("echo", {"a": 1})
        assert refused.is_error
        assert text(refused) == (
            "echo is not one of your tools. Your tools are list-conventions, get-convention."
        )
    [row] = gateway.audit.records
    assert (row.skill, row.server, row.tool) == ("echo", None, None)
    assert (row.policy_decision, row.rule, row.outcome) == ("deny", "grant", "refused")
    assert calls(tmp_path) == []


async def test_a_call_without_arguments_sends_an_empty_object(connect: Connect) -> None:
    async with connect("ada") as ada:
        assert json.loads(text(await ada.call_tool("echo")))["arguments"] == {}


async def test_fixed_arguments_win_and_are_not_advertised(connect: Connect) -> None:
    async with connect("ada") as ada:
        sent = await ada.call_tool("echo-to-ops", {"to": "all", "say": "hi"})
        assert json.loads(text(sent))["arguments"] == {"to": "ops", "say": "hi"}


async def test_application_meta_reaches_the_server_and_connection_meta_does_not(
    connect: Connect,
) -> None:
    async with connect("ada") as ada:
        sent = await ada.call_tool(
            "echo", {}, meta={"example.com/ticket": {"id": 7}, "io.modelcontextprotocol/x": 1}
        )
        meta = json.loads(text(sent))["meta"]
        assert meta["example.com/ticket"] == {"id": 7}
        assert "io.modelcontextprotocol/x" not in meta
        client = meta.get("io.modelcontextprotocol/clientInfo", {"name": "seriatim"})
        assert client["name"] == "seriatim"
        assert "progressToken" not in meta


async def test_structured_content_and_its_meta_pass_through(connect: Connect) -> None:
    async with connect("ada") as ada:
        await ada.call_tool("list-conventions", {})
        await ada.call_tool("get-convention", {})
        result = await ada.call_tool("structured", {})
        assert (result.is_error, result.content) == (False, [])
        assert result.structured_content == {"n": 3}
        assert result.meta is not None
        assert result.meta["example/key"] == [1, None]
        server = result.meta.get("io.modelcontextprotocol/serverInfo", {"name": "seriatim"})
        assert server["name"] == "seriatim"


async def test_an_image_passes_through(connect: Connect) -> None:
    async with connect("ada") as ada:
        picture, words = (await ada.call_tool("picture", {})).content
        assert isinstance(picture, mcp_types.ImageContent)
        assert picture.mime_type == "image/png"
        assert picture.data.startswith("iVBORw0KGgo")
        assert isinstance(words, mcp_types.TextContent)


async def test_a_failed_tool_is_not_taken_for_a_refusal(connect: Connect, gateway: Gateway) -> None:
    async with connect("ada") as ada:
        failed = await ada.call_tool("fail", {"text": REFUSAL})
        assert (failed.is_error, text(failed)) == (True, REFUSAL)
    [row] = gateway.audit.records
    assert (row.policy_decision, row.outcome, row.error_kind) == ("allow", "failed", "tool_error")


@pytest.mark.parametrize("data", [{"k": [1]}, "words", None])
async def test_a_protocol_error_keeps_code_message_and_data(
    connect: Connect, gateway: Gateway, data: object
) -> None:
    arguments = {"code": -32077, "message": "no luck"} | ({} if data is None else {"data": data})
    async with connect("ada") as ada:
        with pytest.raises(MCPError) as caught:
            await ada.call_tool("raise", arguments)
    assert (caught.value.code, str(caught.value), caught.value.data) == (-32077, "no luck", data)
    [row] = gateway.audit.records
    assert (row.outcome, row.error_kind) == ("failed", "protocol_error")


async def test_a_tool_that_its_server_does_not_know_is_the_servers_answer(connect: Connect) -> None:
    async with connect("ada") as ada:
        with pytest.raises(MCPError, match="Unknown tool: vanished"):
            await ada.call_tool("vanished", {})


async def test_progress_is_passed_on_to_whoever_asks(connect: Connect) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def on_progress(done: float, total: float | None, message: str | None) -> None:
        seen.append((done, total, message))

    async with connect("ada") as ada:
        await ada.call_tool("progress", {"steps": 3}, progress_callback=on_progress)
        await eventually(lambda: len(seen) == 3)
    assert seen == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


async def test_a_cancelled_call_is_cancelled_upstream_recorded_and_unlocks_nothing(
    connect: Connect, gateway: Gateway, tmp_path: Path
) -> None:
    rows = gateway.audit.records
    async with connect("ada") as ada:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ada.call_tool, "slow", {"seconds": 30})
            await eventually(lambda: calls(tmp_path) == ["slow"])
            tasks.cancel_scope.cancel()
        await eventually(lambda: (tmp_path / "calls.jsonl.cancelled").exists())
        await eventually(lambda: bool(rows))
        assert (rows[0].policy_decision, rows[0].error_kind) == ("allow", "cancelled")
        refused = await ada.call_tool("search-code", {"query": "x"})
        assert text(refused) == (
            "search-code requires slow, which was called but did not succeed in this session. "
            "Call slow again, then retry."
        )


async def test_a_prerequisite_in_flight_does_not_count(connect: Connect, tmp_path: Path) -> None:
    go = tmp_path / "go"
    async with connect("ada") as ada:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ada.call_tool, "slow", {"seconds": 30, "until": str(go)})
            await eventually(lambda: calls(tmp_path) == ["slow"])
            refused = await ada.call_tool("search-code", {"query": "x"})
            go.touch()
        assert text(refused) == (
            "search-code requires slow, which was called but whose result had not been returned "
            "when search-code was called. Read the result of slow, then retry."
        )
        assert not (await ada.call_tool("search-code", {"query": "x"})).is_error


async def test_agents_that_use_the_same_request_ids_cross_nothing(
    gateway: Gateway, era: Era
) -> None:
    got: dict[str, set[str]] = {"ada": set(), "bob": set()}

    async def work(agent: str) -> None:
        async with gateway.over_http(agent, era) as client:
            for _ in range(10):
                got[agent].add(text(await client.call_tool("nope", {})))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work, "ada")
        tasks.start_soon(work, "bob")
    for agent, granted in {"ada": ADA, "bob": BOB}.items():
        assert got[agent] == {
            f"nope is not one of your tools. Your tools are {', '.join(granted)}."
        }
        assert sum(row.agent == agent for row in gateway.audit.records) == 10


async def test_an_exception_inside_does_not_reach_the_client_as_text(
    connect: Connect,
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fault(*_: object) -> Awaitable[Registration]:
        raise ValueError("an inner secret")

    monkeypatch.setattr("seriatim.runtime.gateway.server.governed_mcp_call", fault)
    async with connect("ada") as ada:
        with pytest.raises(MCPError) as caught:
            await ada.call_tool("echo", {})
    assert (caught.value.code, str(caught.value)) == (-32603, "internal error of the gateway")
    ours = [record for record in caplog.records if record.name == "seriatim.runtime.gateway.relay"]
    assert [record.getMessage() for record in ours] == [
        "the gateway could not answer `tools/call`: ValueError"
    ]


async def test_every_call_has_its_row_before_its_answer(connect: Connect, gateway: Gateway) -> None:
    rows: list[AuditRecord] = gateway.audit.records
    async with connect("ada") as ada:
        for number, name in enumerate(["echo", "nope", "get-convention", "fail"], 1):
            await ada.call_tool(name, {})
            assert len(rows) == number
    assert len({row.decision_id for row in rows}) == 4
