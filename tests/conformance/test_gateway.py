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
import httpx2
import pytest
import uvicorn
import yaml
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from interceptors import MemoryAuditSink
from seriatim.runtime.gateway.http import PATH, Address, listen
from tests.conformance import upstream
from tests.support.executors import opened
from tests.support.gateways import serving
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
        ["logging-set-level", "tools-call-with-logging"],
        "the gateway does not relay log messages, which the protocol has deprecated",
    ),
    **dict.fromkeys(
        ["resources-subscribe", "resources-unsubscribe"],
        "the gateway relays resources as they are read, and no news of them",
    ),
}
"""What a client does not get through the gateway."""

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
async def served(app: ASGIApp) -> AsyncIterator[str]:
    """Serve `app` on a free port, and give its URL."""
    config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=0)
    server = uvicorn.Server(config)
    with listen(Address("127.0.0.1", 0)) as listener:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [listener])
            yield f"http://127.0.0.1:{listener.getsockname()[1]}{PATH}"
            server.should_exit = True


@asynccontextmanager
async def bearing(token: str, url: str) -> AsyncIterator[str]:
    """Lend the token to clients that cannot be told one: hand on what they send, and bear it."""
    async with httpx2.AsyncClient(timeout=None) as http:

        async def hand_on(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                return
            request = Request(scope, receive)
            headers = {**request.headers, "authorization": f"Bearer {token}"}
            sent = http.build_request(
                request.method, url, headers=headers, content=await request.body()
            )
            answer = await http.send(sent, stream=True)
            streamed = StreamingResponse(answer.aiter_raw(), answer.status_code, answer.headers)
            try:
                await streamed(scope, receive, send)
            finally:
                await answer.aclose()

        async with served(hand_on) as lent:
            yield lent


def workspace(directory: Path) -> Path:
    content = {
        "metadata": {"name": "conformance"},
        "mcp_servers": [{"id": "upstream", "command": [sys.executable, upstream.__file__]}],
        "skills": [{"id": tool, "server": "upstream", "tool": tool} for tool in upstream.TOOLS],
        "agents": {"root": {"id": "client", "role": "root", "skills": list(upstream.TOOLS)}},
        "seriatim": {"expose": ["tools", "resources", "prompts"]},
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
    audit = MemoryAuditSink()
    async with (
        opened(workspace(tmp_path), audit) as run,
        serving(run, audit) as gateway,
        bearing(gateway.tokens["client"], gateway.url) as url,
    ):
        problems = await failing(servers, url, tmp_path / "results")
    assert problems.keys() == NOT_OF_THE_GATEWAY.keys(), problems
    # Each call is on record, those of scenarios that do not pass too.
    called = upstream.TOOLS.keys() - NOT_CALLED | {"test_reconnection"}
    assert {record.skill for record in audit.records} == called


async def test_the_server_behind_it_passes_by_itself(servers: Path, tmp_path: Path) -> None:
    app = upstream.server().streamable_http_app()
    async with served(app) as url:
        problems = await failing(servers, url, tmp_path / "results")
    assert problems.keys() == NOT_OF_THE_SERVER.keys(), problems
