"""Runs of the model executor on a real stdio server, with models written as functions."""

import json
import os
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.settings import ModelSettings

from interceptors import AgentId, AuditRecord, AuditSink, MemoryAuditSink, RunId
from seriatim.runtime.events import Event
from seriatim.runtime.model.model_loop import Driver, Ending, run_topology
from seriatim.runtime.model.providers import ChosenModel
from seriatim.runtime.run import Observers, open_run
from seriatim.topology.resolver import load_workspace

SERVER = Path(__file__).parent / "servers" / "counting.py"

TOOLS = {
    "list": "list_conventions",
    "get": "get_convention",
    "search": "search_code",
    "fail": "fail",
    "raise": "raise",
    "slow": "slow",
    "echo": "echo",
    "picture": "picture",
    "structured": "structured",
    "forge": "forge",
    "flaky": "flaky",
    "unicode": "unicode",
    "ask": "ask",
}

Reply = str | Sequence[tuple[str, Any]]
"""What a model answers: a text, or calls as pairs of name and arguments."""


def workspace_file(directory: Path, agents: str, *, more: str = "") -> Path:
    """Write a one-file workspace in which every tool of the counting server is a skill."""
    skills = [
        {"id": name, "description": f"The skill {name}.", "server": "box", "tool": tool}
        for name, tool in TOOLS.items()
    ]
    servers = [
        {
            "id": "box",
            "command": [sys.executable, str(SERVER)],
            "env": {"CALLS_FILE": str(directory / "calls")},
        }
    ]
    file = directory / "topology.yaml"
    file.write_text(
        "\n".join(
            [
                "metadata: {name: test}",
                f"mcp_servers: {json.dumps(servers)}",
                f"skills: {json.dumps(skills)}",
                textwrap.dedent(agents),
                textwrap.dedent(more),
            ]
        ),
        encoding="utf-8",
    )
    return file


def reached(directory: Path) -> list[str]:
    """Return the tools that were called on the server, in order."""
    calls = directory / "calls"
    lines = calls.read_text(encoding="utf-8").splitlines() if calls.exists() else []
    return [json.loads(line)["tool"] for line in lines]


class Playing:
    """A model that gives one reply after the other, and keeps what it was sent."""

    def __init__(self, *replies: Reply | Callable[[list[ModelMessage]], Reply]) -> None:
        self._replies = list(replies)
        self.seen: list[list[ModelMessage]] = []
        self.infos: list[AgentInfo] = []

    async def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.seen.append(list(messages))
        self.infos.append(info)
        # The last reply repeats: an agent that never stops.
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if callable(reply):
            reply = reply(messages)
        if isinstance(reply, str):
            return ModelResponse(parts=[TextPart(reply)])
        return ModelResponse(parts=[ToolCallPart(name, arguments) for name, arguments in reply])

    def results(self, request: int = -1) -> list[Any]:
        """Return the parts of the last message of a request: the results of a turn."""
        message = self.seen[request][-1]
        assert isinstance(message, ModelRequest)
        return list(message.parts)

    def texts(self, request: int = -1) -> list[str]:
        """Return the results of a turn as text."""
        return [part.content for part in self.results(request)]


@dataclass
class Played:
    """What became of a run."""

    ending: Ending
    records: list[AuditRecord]
    events: list[Event] = field(default_factory=list)


async def play(
    file: Path,
    models: Mapping[str, Playing],
    *,
    max_calls: int = 200,
    task: str = "go",
    settings: ModelSettings | None = None,
    audit: AuditSink | None = None,
) -> Played:
    """Run the only topology of a workspace with one model an agent."""
    chosen = {
        AgentId(name): ChosenModel(
            "test", FunctionModel(model, model_name=name), settings or ModelSettings(), frozenset()
        )
        for name, model in models.items()
    }
    return await play_chosen(file, chosen, max_calls=max_calls, task=task, audit=audit)


async def play_chosen(
    file: Path,
    drivers: Mapping[AgentId, Driver],
    *,
    max_calls: int = 200,
    task: str = "go",
    audit: AuditSink | None = None,
) -> Played:
    """Run the only topology of a workspace with these models and harnesses."""
    workspace = load_workspace(file)
    [topology] = workspace.topologies.values()
    sink = MemoryAuditSink()
    events: list[Event] = []
    async with open_run(
        RunId("r1"),
        workspace,
        topology,
        list(topology.agents),
        audit=audit or sink,
        max_calls=max_calls,
        environ=os.environ,
        observers=Observers(),
    ) as run:
        ending = await run_topology(run, drivers, task, events.append)
    return Played(ending, sink.records, events)
