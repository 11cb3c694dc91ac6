"""MCP's own conformance tests, run against the gateway and against the server behind it.

They know the handshake era only. A scenario that does not pass stands here with its reason; each
other one has to pass, with every check in it.
"""

import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import pytest
import yaml
from starlette.types import ASGIApp, Receive, Scope, Send

from interceptors import AgentId, MemoryAuditSink
from seriatim.runtime.gateway import gateway_for_tokens
from seriatim.runtime.http import Address, http_app, listen, serve_http, url_of
from seriatim.runtime.registrations import Registrations, registration
from tests.conformance import upstream
from tests.support.executors import opened
from tests.support.services import made_by

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(180),
    # The tests ask for log messages, which the newest protocol has deprecated.
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

SUITE: Final = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
NODE: Final = "node_modules/node/bin/node"
POLLING: Final = "its tool closes its own response stream, which the SDK offers no server to do"

NOT_OF_THE_SERVER: Final = {"server-sse-polling": POLLING}
"""What the server behind the gateway does not pass by itself."""

NOT_OF_THE_GATEWAY: Final = {
    "server-sse-polling": POLLING,
    **dict.fromkeys(
        [
            "tools-call-sampling",
            "tools-call-elicitation",
            "elicitation-sep1034-defaults",
            "elicitation-sep1330-enums",
        ],
        "the gateway does not ask a client for what a server wants of it",
    ),
    **dict.fromkeys(
        ["logging-set-level", "tools-call-with-logging"],
        "the gateway does not relay log messages, which the protocol has deprecated",
    ),
    **dict.fromkeys(
        [
            "completion-complete",
            "resources-list",
            "resources-read-text",
            "resources-read-binary",
            "resources-templates-read",
            "resources-subscribe",
            "resources-unsubscribe",
            "prompts-list",
            "prompts-get-simple",
            "prompts-get-with-args",
            "prompts-get-embedded-resource",
            "prompts-get-with-image",
        ],
        "the gateway relays tools only",
    ),
}

NOT_CALLED: Final = {"json_schema_2020_12_tool", "test_tool_with_logging"}
"""Tools that are only listed, or that the tests do not get as far as to call."""


@pytest.fixture
def anyio_backend() -> str:
    """uvicorn runs on asyncio alone."""
    return "asyncio"


@pytest.fixture(scope="module")
def servers() -> Path:
    return Path(made_by("mcp-servers", "--built"))


@asynccontextmanager
async def served(app: ASGIApp, address: Address) -> AsyncIterator[str]:
    """Serve `app` on a free port, and give its URL."""
    ready = anyio.Event()
    with listen(address) as listener:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve_http, app, listener, ready)
            await ready.wait()
            yield url_of(address, listener)
            tasks.cancel_scope.cancel()


def bearing(token: str, app: ASGIApp) -> ASGIApp:
    """Return `app` for clients that cannot be told a token: each request gets it here."""

    async def with_token(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            header = (b"authorization", f"Bearer {token}".encode())
            scope["headers"] = [*scope["headers"], header]
        await app(scope, receive, send)

    return with_token


def workspace(directory: Path) -> Path:
    content = {
        "metadata": {"name": "conformance"},
        "mcp_servers": [{"id": "upstream", "command": [sys.executable, upstream.__file__]}],
        "skills": [{"id": tool, "server": "upstream", "tool": tool} for tool in upstream.TOOLS],
        "agents": {"root": {"id": "client", "role": "root", "skills": list(upstream.TOOLS)}},
    }
    file = directory / "topology.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file


async def failing(servers: Path, url: str, directory: Path) -> Mapping[str, list[str]]:
    """Run all scenarios, and return those that do not pass, each with what the tests say of it."""
    command = [servers / NODE, servers / SUITE, "server", "--url", url, "--suite", "all"]
    done = await anyio.run_process([*map(str, command), "-o", str(directory)], check=False)
    results = results_in(directory)
    assert len(results) > 30, done.stderr.decode()
    return {scenario: problems for scenario, problems in results.items() if problems}


def results_in(directory: Path) -> dict[str, list[str]]:
    results = {}
    for file in directory.rglob("checks.json"):
        # server-SCENARIO-YYYY-MM-DDTHH-MM-SS-mmmZ
        scenario = file.parent.name.removeprefix("server-").rsplit("-", 6)[0]
        checks = json.loads(file.read_text(encoding="utf-8"))
        assert checks, scenario
        wrong = [check for check in checks if check["status"] not in ("SUCCESS", "INFO")]
        results[scenario] = [check.get("errorMessage", check["name"]) for check in wrong]
    return results


async def test_the_gateway_passes_what_it_relays(servers: Path, tmp_path: Path) -> None:
    audit, address = MemoryAuditSink(), Address("127.0.0.1", 0)
    async with opened(workspace(tmp_path), audit) as run:
        registrations = Registrations()
        token = registrations.add(registration(run, AgentId("client")))
        app = http_app(gateway_for_tokens(registrations), registrations, address)
        async with served(bearing(token, app), address) as url:
            problems = await failing(servers, url, tmp_path / "results")
    assert problems.keys() == NOT_OF_THE_GATEWAY.keys(), problems
    # Each call is on record, those of scenarios that do not pass too.
    called = upstream.TOOLS.keys() - NOT_CALLED | {"test_reconnection"}
    assert {record.skill for record in audit.records} == called


async def test_the_server_behind_it_passes_by_itself(servers: Path, tmp_path: Path) -> None:
    app = upstream.server().streamable_http_app()
    async with served(app, Address("127.0.0.1", 0)) as url:
        problems = await failing(servers, url, tmp_path / "results")
    assert problems.keys() == NOT_OF_THE_SERVER.keys(), problems
