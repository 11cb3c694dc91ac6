"""Gateways for tests: a workspace on a real MCP server, a run of it, and ways to reach it."""

import math
import ssl
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import anyio
import httpx2
import yaml
from mcp import Client
from mcp.client.session import MessageHandlerFnT
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp.shared.memory import MessageStream, create_client_server_memory_streams

from interceptors import AgentId, AuditSink, MemoryAuditSink, RunId
from seriatim.runtime.dispatch import NO_LIMIT
from seriatim.runtime.gateway.front import Front
from seriatim.runtime.gateway.front import serving as runtime_serving
from seriatim.runtime.gateway.http import Address, listen
from seriatim.runtime.gateway.register import FOREVER, Clock, Register
from seriatim.runtime.gateway.registrations import registration
from seriatim.runtime.gateway.server import gateway_for
from seriatim.runtime.gateway.tls import Plain
from seriatim.runtime.run import Observers, Run, open_run
from seriatim.topology.resolver import load_workspace

SERVER = Path(__file__).parent / "servers" / "counting.py"

REFUSAL = (
    "get-convention requires list-conventions, which has not been called in this session. "
    "Call list-conventions first, then retry."
)
NOTE_PID = 'echo $$ >> "$PIDS_FILE"; exec "$0" "$@"'

Era = Literal["auto", "legacy"]

ADA = [
    "list-conventions",
    "get-convention",
    "search-code",
    "echo",
    "echo-to-ops",
    "slow",
    "picture",
    "structured",
    "raise",
    "fail",
    "progress",
    "vanished",
]
BOB = ["list-conventions", "get-convention"]
RULES = {
    "get-convention": ["list-conventions"],
    "structured": ["get-convention"],
    "search-code": ["slow"],
}


def write_workspace(
    directory: Path,
    *,
    env: Mapping[str, str] | None = None,
    settings: Mapping[str, object] | None = None,
) -> Path:
    """Write a workspace of two agents on the counting server, and return its file.

    The server's process id is noted in a file `pids` beside it.
    """
    skills = [
        {"id": skill, "server": "counting", "tool": skill.replace("-", "_")}
        for skill in ADA
        if skill != "echo-to-ops"
    ]
    fixed = {"id": "echo-to-ops", "server": "counting", "tool": "echo", "arguments": {"to": "ops"}}
    rules_of_bob = {"get-convention": ["list-conventions"]}
    workspace = {
        "apiVersion": "swarmkit/v1",
        "kind": "Topology",
        "metadata": {"name": "pair", "version": "1.0.0"},
        "mcp_servers": [
            {
                "id": "counting",
                "transport": "stdio",
                "command": ["sh", "-c", NOTE_PID, sys.executable, str(SERVER)],
                "env": {
                    "CALLS_FILE": str(directory / "calls.jsonl"),
                    "PIDS_FILE": str(directory / "pids"),
                    **(env or {}),
                },
            }
        ],
        "skills": [*skills, fixed],
        "seriatim": dict(settings or {}),
        "agents": {
            "root": {
                "id": "ada",
                "role": "root",
                "skills": ADA,
                "requires": RULES,
                "children": [
                    {"id": "bob", "role": "worker", "skills": BOB, "requires": rules_of_bob}
                ],
            }
        },
    }
    path = directory / "topology.yaml"
    path.write_text(yaml.safe_dump(workspace, sort_keys=False), encoding="utf-8")
    return path


@asynccontextmanager
async def running(
    path: Path,
    audit: AuditSink,
    observers: Observers | None = None,
    *,
    patience: float = math.inf,
) -> AsyncIterator[Run]:
    """Open the run `r1` of the workspace at `path`, with all its agents."""
    workspace = load_workspace(path)
    topology = workspace.topologies["pair"]
    async with open_run(
        RunId("r1"),
        workspace,
        topology,
        topology.agents,
        audit=audit,
        max_calls=NO_LIMIT,
        environ={},
        observers=observers or Observers(),
        interactive=True,
        patience=patience,
    ) as run:
        yield run


@dataclass
class Gateway:
    """A gateway that runs in the test's own process.

    Attributes:
        url: where it is reached over HTTP.
        tokens: the agents' bearer tokens.
        register: who may speak to it.
    """

    run: Run
    audit: MemoryAuditSink
    url: str
    tokens: dict[str, str]
    register: Register

    @asynccontextmanager
    async def over_http(
        self,
        agent: str,
        era: Era,
        hear: MessageHandlerFnT | None = None,
        verify: ssl.SSLContext | bool = True,
        **more: str,
    ) -> AsyncIterator[Client]:
        """Reach the agent over HTTP; `more` are headers beside the token's."""
        headers = {"Authorization": f"Bearer {self.tokens[agent]}", **more}
        async with httpx2.AsyncClient(headers=headers, verify=verify) as http:
            transport = streamable_http_client(self.url, http_client=http)
            async with Client(transport, mode=era, message_handler=hear) as client:
                yield client

    @asynccontextmanager
    async def over_streams(
        self, agent: str, era: Era, hear: MessageHandlerFnT | None = None
    ) -> AsyncIterator[Client]:
        """Reach the agent as over stdio; see `over_streams`."""
        async with over_streams(self.run, agent, era, hear) as client:
            yield client


@asynccontextmanager
async def over_streams(
    run: Run, agent: str, era: Era, hear: MessageHandlerFnT | None = None
) -> AsyncIterator[Client]:
    """Reach an agent as over stdio: whoever speaks is the one registration."""
    gateway = gateway_for(registration(run, AgentId(agent)))
    async with Client(_streams(gateway), mode=era, message_handler=hear) as client:
        yield client


@asynccontextmanager
async def _streams(server: Server) -> AsyncIterator[MessageStream]:
    async with (
        create_client_server_memory_streams() as (ours, theirs),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(server.run, *theirs, server.create_initialization_options())
        yield ours
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def serving(
    run: Run, audit: MemoryAuditSink, *, now: Clock = time.time, **more: Any
) -> AsyncIterator[Gateway]:
    """Serve the agents of a run on a socket of this machine; `more` is for its `Front`."""
    address = Address("127.0.0.1", 0)
    front = Front(address, listen(address), **({"encryption": Plain()} | more))
    async with runtime_serving(front, run, now) as register:
        tokens = {
            agent: (await register.issue(run.id, agent, FOREVER))[1]
            for agent in run.topology.agents
        }
        yield Gateway(
            run, audit, front.url, {str(a): token for a, token in tokens.items()}, register
        )


async def eventually(found: Callable[[], bool]) -> None:
    """Wait for something that another process, or a task that nobody waits for, brings about."""
    with anyio.fail_after(20):
        while not found():  # noqa: ASYNC110  there is no event to wait for
            await anyio.sleep(0.005)
