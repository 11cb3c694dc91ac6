"""What the gateway shows of tools that change, and how its clients hear of it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types
import pytest
from mcp import Client
from mcp.client.session import IncomingMessage

from interceptors import AgentId, MemoryAuditSink
from seriatim.runtime.gateway.registrations import registration
from seriatim.runtime.servers.audience import Audience
from tests.support.gateways import (
    ADA,
    Gateway,
    eventually,
    over_streams,
    running,
    serving,
    write_workspace,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """uvicorn runs on asyncio alone."""
    return "asyncio"


@pytest.fixture
def changes(tmp_path: Path) -> Path:
    return tmp_path / "changes"


@asynccontextmanager
async def served(directory: Path, changes: Path) -> AsyncIterator[Gateway]:
    env = {"TELL": "1", "CHANGES_FILE": str(changes)}
    audit = MemoryAuditSink()
    path = write_workspace(directory, env=env)
    async with running(path, audit) as run, serving(run, audit) as gateway:
        yield gateway


def write(changes: Path, value: Any) -> None:
    half = changes.with_suffix(".half")
    half.write_text(json.dumps(value))
    half.rename(changes)


async def description(client: Client, name: str) -> str | None:
    tools = (await client.list_tools(cache_mode="refresh")).tools
    return {tool.name: tool.description for tool in tools}[name]


@pytest.mark.parametrize("way", ["over_http", "over_streams"])
async def test_clients_of_the_newest_protocol_that_listen_hear_of_a_change(
    way: str, tmp_path: Path, changes: Path
) -> None:
    async with (
        served(tmp_path, changes) as gateway,
        getattr(gateway, way)("ada", "auto") as ada,
        ada.listen(tools_list_changed=True) as heard,
    ):
        assert ada.server_capabilities.tools.list_changed
        assert await description(ada, "echo") != "Sends mail."
        write(changes, {"echo": {"description": "Sends mail."}})
        with anyio.fail_after(20):
            await anext(heard)
        assert await description(ada, "echo") == "Sends mail."
        assert [tool.name for tool in (await ada.list_tools()).tools] == ADA


@pytest.mark.parametrize("way", ["over_http", "over_streams"])
async def test_clients_of_the_handshake_era_hear_of_a_change(
    way: str, tmp_path: Path, changes: Path
) -> None:
    heard: list[IncomingMessage] = []

    async def hear(message: IncomingMessage) -> None:
        heard.append(message)

    async with (
        served(tmp_path, changes) as gateway,
        getattr(gateway, way)("ada", "legacy", hear=hear) as ada,
    ):
        assert ada.server_capabilities.tools.list_changed
        await ada.list_tools()
        write(changes, {"echo": {"description": "Sends mail."}})
        await eventually(lambda: bool(heard))
        assert isinstance(heard[0], mcp_types.ToolListChangedNotification)
        assert await description(ada, "echo") == "Sends mail."


async def test_the_tools_of_a_server_that_is_slow_to_start_are_shown_when_they_are_known(
    tmp_path: Path,
) -> None:
    path = write_workspace(tmp_path, env={"START_DELAY": "1"})
    audit = MemoryAuditSink()
    async with (
        running(path, audit, patience=0.0) as run,
        over_streams(run, "ada", "auto") as ada,
        ada.listen(tools_list_changed=True) as heard,
    ):
        assert [tool.name for tool in (await ada.list_tools()).tools] == ADA
        assert not await description(ada, "echo")
        with anyio.fail_after(20):
            await anext(heard)
        assert await description(ada, "echo") == "Returns its arguments and its `_meta` as JSON."


async def test_a_registration_that_is_forgotten_is_told_no_more(
    tmp_path: Path, changes: Path
) -> None:
    async with running(write_workspace(tmp_path), MemoryAuditSink()) as run:
        for _ in range(3):
            registration(run, AgentId("ada"))
        kept = registration(run, AgentId("ada"))
        assert len(run.audience) == 1
        assert kept.tools


class Deaf:
    def __init__(self) -> None:
        self.asked = False

    async def tools_changed(self) -> None:
        self.asked = True
        await anyio.sleep_forever()


async def test_whoever_does_not_listen_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seriatim.runtime.servers.audience.TELLING", 0.05)
    audience, deaf = Audience(), Deaf()
    audience.join(deaf)
    with anyio.fail_after(5):
        await audience.tell()
    assert deaf.asked
