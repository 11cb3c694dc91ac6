"""What one side of a gateway sees of the other: what the topology says, and nothing else."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx2
import mcp_types
import pytest
import yaml
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from seriatim.runtime.servers.process import INHERITED
from tests.support.gateways import Era

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

MIRROR = Path(__file__).parents[1] / "support" / "servers" / "mirror.py"
SECRETS = {
    "SERIATIM_ADMIN_TOKEN": "admin-token-of-the-gateway",
    "ANTHROPIC_API_KEY": "key-of-the-operator",
    "FOR_THE_SERVER": "value-for-the-server",
    "NOT_FOR_IT": "value-for-nobody",
}
SENT = {
    "Cookie": "session=cookie-of-the-client",
    "X-Api-Key": "key-of-the-client",
    "X-Forwarded-For": "192.0.2.77",
    "Proxy-Authorization": "Basic proxy-secret-of-the-client",
    "User-Agent": "agent-of-the-client",
}


@pytest.fixture
def anyio_backend() -> str:
    """uvicorn runs on asyncio alone."""
    return "asyncio"


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> Era:
    return request.param


@pytest.fixture(scope="module")
def upstream() -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, str(MIRROR), "--http"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, upstream: str) -> Iterator[dict[str, str]]:
    """Start a gateway on one server over stdio and one over HTTP, and give its line."""
    tmp_path = tmp_path_factory.mktemp("walls")
    env = {"GIVEN": "given-by-the-topology", "EXPANDED": "${FOR_THE_SERVER}"}
    headers = {"Authorization": "Bearer ${FOR_THE_SERVER}", "X-Given": "given-by-the-topology"}
    workspace = {
        "apiVersion": "swarmkit/v1",
        "kind": "Topology",
        "metadata": {"name": "walls", "version": "1.0.0"},
        "mcp_servers": [
            {
                "id": "near",
                "transport": "stdio",
                "command": [sys.executable, str(MIRROR)],
                "env": env,
            },
            {"id": "far", "transport": "http", "endpoint": upstream, "headers": headers},
        ],
        "skills": [
            {"id": f"look-{server}", "server": server, "tool": "look"} for server in ("near", "far")
        ],
        "agents": {"root": {"id": "ada", "role": "root", "skills": ["look-near", "look-far"]}},
    }
    path = tmp_path / "topology.yaml"
    path.write_text(yaml.safe_dump(workspace, sort_keys=False))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    with (
        (tmp_path / "stderr").open("w") as stderr,
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "seriatim",
                "gateway",
                path,
                "--agent=ada",
                "--http=127.0.0.1:0",
            ],
            env=kept | SECRETS,
            stdout=subprocess.PIPE,
            stderr=stderr,
        ) as process,
    ):
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
        process.terminate()
        process.wait(20)
    assert "Traceback" not in (tmp_path / "stderr").read_text()


async def look(gateway: dict[str, str], era: Era, server: str) -> tuple[Any, list[httpx2.Headers]]:
    """Return what a server sees of a call, and the headers that come back."""
    came_back: list[httpx2.Headers] = []

    async def note(response: httpx2.Response) -> None:
        came_back.append(response.headers)

    headers = {"Authorization": f"Bearer {gateway['token']}"} | SENT
    async with (
        httpx2.AsyncClient(headers=headers, event_hooks={"response": [note]}) as http,
        Client(streamable_http_client(gateway["url"], http_client=http), mode=era) as client,
    ):
        result = await client.call_tool(f"look-{server}", {})
        [block] = result.content
        assert isinstance(block, mcp_types.TextContent)
        return json.loads(block.text), came_back


@pytest.mark.parametrize("server", ["near", "far"])
async def test_a_server_sees_nothing_of_the_client_but_its_call(
    gateway: dict[str, str], era: Era, server: str
) -> None:
    seen, _ = await look(gateway, era, server)
    shown = json.dumps(seen)
    assert gateway["token"] not in shown
    for value in SENT.values():
        assert value not in shown


async def test_a_process_sees_the_environment_that_its_definition_names_and_the_few(
    gateway: dict[str, str], era: Era
) -> None:
    seen, _ = await look(gateway, era, "near")
    own = {"GIVEN": "given-by-the-topology", "EXPANDED": "value-for-the-server"}
    environment = seen["environment"]
    assert environment.items() >= own.items()
    # Python's own doing, in a C locale.
    assert set(environment) <= {*INHERITED, *own, "LC_CTYPE"}
    shown = json.dumps(seen)
    for name, value in SECRETS.items():
        assert value not in shown or name == "FOR_THE_SERVER"


async def test_an_endpoint_sees_the_headers_that_its_definition_names_and_its_transports(
    gateway: dict[str, str], era: Era
) -> None:
    seen, _ = await look(gateway, era, "far")
    headers = seen["headers"]
    assert headers["authorization"] == "Bearer value-for-the-server"
    assert headers["x-given"] == "given-by-the-topology"
    transports = {
        *("accept", "accept-encoding", "connection", "content-length", "content-type"),
        *("host", "mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id"),
        "user-agent",
    }
    # The gateway keeps what cookies the server itself has set.
    assert headers.pop("cookie", "") in ("", "upstream=secret")
    assert set(headers) <= {*transports, "authorization", "x-given"}


async def test_a_client_sees_no_header_of_a_server(gateway: dict[str, str], era: Era) -> None:
    _, came_back = await look(gateway, era, "far")
    assert came_back
    for headers in came_back:
        assert "set-cookie" not in headers
        assert "x-upstream" not in headers


async def test_no_token_is_in_the_arguments_of_a_process(gateway: dict[str, str]) -> None:
    def listed() -> str:
        command = ["ps", "-eo", "args", "-ww"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    shown = await anyio.to_thread.run_sync(listed)
    for value in (gateway["token"], *SECRETS.values()):
        assert value not in shown
