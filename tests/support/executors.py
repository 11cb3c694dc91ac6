"""Both executors behind one face, so that each behaviour of the gate is one test run on both."""

import json
import math
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

import anyio
import yaml
from mcp import Client
from mcp_types import CallToolResult, TextContent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.settings import ModelSettings

from interceptors import AgentId, AuditSink, CallId, Handler, Outcome, RunId, ToolCall
from seriatim.runtime.dispatch import NO_LIMIT
from seriatim.runtime.engines import Engines
from seriatim.runtime.gateway.registrations import registration
from seriatim.runtime.gateway.server import gateway_for
from seriatim.runtime.model.model_loop import run_topology
from seriatim.runtime.model.providers import ChosenModel
from seriatim.runtime.run import Observers, Run, open_run
from seriatim.topology import load_workspace
from tests.support.mcp_servers import SERVERS

SKILLS: Final = {
    "list": "list_conventions",
    "get": "get_convention",
    "search": "search_code",
    "fail": "fail",
    "raise": "raise",
    "slow": "slow",
    "forge": "forge",
    "flaky": "flaky",
    "structured": "structured",
    "echo": "echo",
}


@dataclass(frozen=True)
class Reply:
    """What an agent got for one call."""

    text: str
    is_error: bool


class Executor(Protocol):
    """Drives one agent by hand."""

    async def turn(self, *calls: tuple[str, Mapping[str, Any]]) -> list[Reply]:
        """Issue calls together, before any of their results is seen; return what they gave."""
        ...


async def ask(executor: Executor, skill: str, **arguments: Any) -> Reply:
    """Issue one call, alone in its turn."""
    [reply] = await executor.turn((skill, arguments))
    return reply


class ModelByHand:
    """Stands in a model's place in the real loop: a test says what it calls, turn by turn."""

    def __init__(self) -> None:
        self._to_model, self._turns = anyio.create_memory_object_stream[list[ToolCallPart]]()
        self._results, self._from_model = anyio.create_memory_object_stream[list[Reply]]()
        self._answered = False
        self._over = anyio.Event()

    async def turn(self, *calls: tuple[str, Mapping[str, Any]]) -> list[Reply]:
        await self._to_model.send([ToolCallPart(name, dict(args)) for name, args in calls])
        return await self._from_model.receive()

    async def end(self) -> None:
        await self._to_model.send([])
        await self._over.wait()

    async def __call__(self, messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        if self._answered:
            returns = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
            await self._results.send([_reply_of(part) for part in returns])
        self._answered = True
        calls = await self._turns.receive()
        if not calls:
            self._over.set()
        return ModelResponse(parts=calls or [TextPart("done")])

    def close(self) -> None:
        for stream in (self._to_model, self._turns, self._results, self._from_model):
            stream.close()


def _reply_of(part: ToolReturnPart) -> Reply:
    content = part.content if isinstance(part.content, str) else json.dumps(part.content)
    return Reply(content, part.outcome == "failed")


@asynccontextmanager
async def by_model(run: Run, agent: str) -> AsyncIterator[Executor]:
    """Drive an agent through the model loop; it is the root of its topology for the occasion."""
    model = ModelByHand()
    chosen = ChosenModel("test", FunctionModel(model), ModelSettings(), frozenset())
    root = run.topology.agents[AgentId(agent)]
    topology = type(run.topology)(run.topology.name, root, run.topology.agents)
    alone = replace(run, topology=topology)
    async with anyio.create_task_group() as tasks:
        models = dict.fromkeys(run.topology.agents, chosen)
        tasks.start_soon(run_topology, alone, models, "go", lambda _event: None)
        try:
            yield model
            await model.end()
        finally:
            model.close()


class Arrivals:
    """Watches the calls of an agent come in, each after the ledger has noted it."""

    def __init__(self) -> None:
        self._arrived, self._waiting = anyio.create_memory_object_stream[CallId](math.inf)

    async def __call__(self, call: ToolCall, proceed: Handler, /) -> Outcome:
        self._arrived.send_nowait(call.id)
        return await proceed(call)

    async def wait(self) -> None:
        """Wait for the next call to come in."""
        with anyio.fail_after(30):
            await self._waiting.receive()

    def close(self) -> None:
        self._arrived.close()
        self._waiting.close()


class ClientByHand:
    """A real MCP client of the gateway; the calls of a turn are requests under way together."""

    def __init__(self, client: Client, arrivals: Arrivals) -> None:
        self._client = client
        self._arrivals = arrivals

    async def turn(self, *calls: tuple[str, Mapping[str, Any]]) -> list[Reply]:
        replies: dict[int, Reply] = {}

        async def call(index: int, name: str, arguments: Mapping[str, Any]) -> None:
            result = await self._client.call_tool(name, dict(arguments))
            replies[index] = Reply(_text_of(result), result.is_error)

        async with anyio.create_task_group() as tasks:
            for index, (name, arguments) in enumerate(calls):
                tasks.start_soon(call, index, name, arguments)
                # So that the requests are judged in the order of the calls.
                await self._arrivals.wait()
        return [replies[index] for index in range(len(calls))]


def _text_of(result: CallToolResult) -> str:
    if not result.content and result.structured_content is not None:
        return json.dumps(result.structured_content)
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


@asynccontextmanager
async def _by_client(run: Run, agent: str, era: str) -> AsyncIterator[Executor]:
    arrivals = Arrivals()
    observers = replace(run.observers, watches=(*run.observers.watches, arrivals))
    watched = replace(run, observers=observers)
    gateway = gateway_for(registration(watched, AgentId(agent)))
    async with Client(gateway, mode=era) as client:
        try:
            yield ClientByHand(client, arrivals)
        finally:
            arrivals.close()


def by_modern_client(run: Run, agent: str) -> AbstractAsyncContextManager[Executor]:
    """Drive an agent through the gateway in the sessionless era."""
    return _by_client(run, agent, "2026-07-28")


def by_legacy_client(run: Run, agent: str) -> AbstractAsyncContextManager[Executor]:
    """Drive an agent through the gateway in the handshake era."""
    return _by_client(run, agent, "legacy")


EXECUTORS: Final = {
    "model": by_model,
    "gateway-modern": by_modern_client,
    "gateway-legacy": by_legacy_client,
}


def gate_workspace(
    directory: Path,
    requires: Mapping[str, Sequence[str]],
    *,
    of_sibling: Mapping[str, Sequence[str]] | None = None,
    timeouts: Mapping[str, float] = {},
) -> Path:
    """Write a workspace of an agent and its sibling, both under the same rules unless given."""
    content = {
        "metadata": {"name": "gate"},
        "mcp_servers": [
            {
                "id": "counting",
                "command": ["python", str(SERVERS / "counting.py")],
                "env": {"CALLS_FILE": str(directory / "calls")},
            }
        ],
        "skills": [
            {
                "id": skill,
                "server": "counting",
                "tool": tool,
                "description": f"The skill {skill}.",
                "constraints": {"timeout_seconds": timeouts.get(skill, 60)},
            }
            for skill, tool in SKILLS.items()
        ],
        "agents": {
            "root": {
                "id": "builder",
                "role": "root",
                **_holding(requires),
                "children": [
                    {
                        "id": "sibling",
                        "role": "worker",
                        **_holding(requires if of_sibling is None else of_sibling),
                    }
                ],
            }
        },
    }
    file = directory / "topology.yaml"
    file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return file


def _holding(requires: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    return {"skills": list(SKILLS), **({"requires": dict(requires)} if requires else {})}


def reached(directory: Path) -> list[str]:
    """Return the tools that were called on the server, in order."""
    calls = directory / "calls"
    lines = calls.read_text(encoding="utf-8").splitlines() if calls.exists() else []
    return [json.loads(line)["tool"] for line in lines]


@asynccontextmanager
async def opened(
    file: Path,
    audit: AuditSink,
    *,
    run: str = "r1",
    observers: Observers | None = None,
    engines: Engines | None = None,
) -> AsyncIterator[Run]:
    """Open a run of the only topology of a workspace."""
    workspace = load_workspace(file)
    [topology] = workspace.topologies.values()
    async with open_run(
        RunId(run),
        workspace,
        topology,
        list(topology.agents),
        audit=audit,
        max_calls=NO_LIMIT,
        environ=os.environ,
        observers=observers or Observers(),
        engines=engines,
    ) as opened_run:
        yield opened_run
