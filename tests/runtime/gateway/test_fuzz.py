"""Random topologies and random interleavings: the gate holds, and each call has its one row.

Several agents are called at once, each by a client of either era, over HTTP, with a real server
behind. `SERIATIM_FUZZ_EXAMPLES` says how many topologies are tried; a few unless given.
"""

import json
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, get_args

import anyio
import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp_types import CallToolResult

from interceptors import MemoryAuditSink
from tests.support.executors import opened
from tests.support.gateways import Era, eventually, serving
from tests.support.mcp_servers import SERVERS

EXAMPLES: Final = int(os.environ.get("SERIATIM_FUZZ_EXAMPLES", "4"))
AGENTS: Final = ("ada", "bob", "cat")
TOOLS: Final = {
    "a": ("slow", "unicode"),
    "b": ("echo",),
    "c": ("forge", "fail"),
    "d": ("search_code",),
    "e": ("flaky",),
}
"""What each skill may be: a tool is one skill's alone, else it would be a way round a rule."""
SKILLS: Final = tuple(TOOLS)
REPEATING: Final = {"echo", "forge", "fail", "search_code"}
"""Tools whose answers repeat what they were told."""
ERAS: Final[tuple[Era, ...]] = get_args(Era)


@dataclass(frozen=True)
class Call:
    """A call that an agent makes; `cancelled` ones are given up once they have reached the server.

    Attributes:
        number: tells it from every other, in its arguments.
    """

    agent: str
    era: Era
    skill: str
    number: int
    cancelled: bool


@dataclass(frozen=True)
class Plan:
    """Agents with their rules, and steps; the calls of a step are under way together."""

    tools: Mapping[str, str]
    grants: Mapping[str, tuple[str, ...]]
    requires: Mapping[str, Mapping[str, tuple[str, ...]]]
    steps: tuple[tuple[Call, ...], ...]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    tools = {skill: draw(st.sampled_from(TOOLS[skill])) for skill in SKILLS}
    grants, requires = {}, {}
    for agent in AGENTS:
        grants[agent] = tuple(s for s in SKILLS if draw(st.integers(0, 4)))
        rules = {
            skill: tuple(before for before in grants[agent][:index] if draw(st.booleans()))
            for index, skill in enumerate(grants[agent])
        }
        requires[agent] = {skill: before for skill, before in rules.items() if before}
    numbers = iter(range(1_000))
    one = st.builds(
        lambda agent, era, skill, cancelled: Call(
            agent, era, skill, next(numbers), cancelled and tools[skill] == "slow"
        ),
        st.sampled_from(AGENTS),
        st.sampled_from(ERAS),
        st.sampled_from(SKILLS),
        st.booleans(),
    )
    steps = draw(st.lists(st.lists(one, min_size=1, max_size=6), min_size=4, max_size=12))
    return Plan(tools, grants, requires, tuple(map(tuple, steps)))


def mark_of(call: Call) -> str:
    return f"<{call.agent} {call.number}>"


def workspace(directory: Path, plan: Plan) -> Path:
    command = ["python", str(SERVERS / "counting.py")]
    agents = [
        {
            "id": agent,
            "role": "worker",
            "skills": list(plan.grants[agent]),
            "requires": {skill: list(steps) for skill, steps in plan.requires[agent].items()},
        }
        for agent in AGENTS
    ]
    # What is empty is left out, as whoever writes a topology would.
    agents = [{key: value for key, value in agent.items() if value} for agent in agents]
    content = {
        "metadata": {"name": "fuzz"},
        "mcp_servers": [
            {"id": "s", "command": command, "env": {"CALLS_FILE": str(directory / "calls")}}
        ],
        "skills": [
            {
                "id": skill,
                "server": "s",
                "tool": plan.tools[skill],
                "arguments": {"until": str(directory / "go"), "failures": 2},
            }
            for skill in SKILLS
        ],
        "agents": {"root": {"id": "root", "role": "root", "children": agents}},
    }
    file = directory / "topology.yaml"
    file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return file


def reached(directory: Path) -> list[int]:
    """Return the numbers of the calls that ran on the server, in the order in which they began."""
    calls = directory / "calls"
    lines = calls.read_text(encoding="utf-8").splitlines() if calls.exists() else []
    return [json.loads(line)["arguments"]["number"] for line in lines]


@dataclass
class Course:
    """What became of the calls of a plan: what each client got, and what the server saw."""

    directory: Path
    plan: Plan
    audit: MemoryAuditSink
    answers: dict[int, CallToolResult] = field(default_factory=dict)

    async def take(self, clients: Mapping[tuple[str, Era], Client]) -> None:
        for step in self.plan.steps:
            go = self.directory / "go"
            go.unlink(missing_ok=True)
            async with anyio.create_task_group() as tasks:
                for call in step:
                    tasks.start_soon(self._make, clients[call.agent, call.era], call)
                with anyio.fail_after(20):
                    await self._given_up(step)
                go.touch()
            # The row of a call that was given up is written after its client has left.
            numbers = {call.number for call in step}
            await eventually(lambda numbers=numbers: numbers <= self.recorded().keys())

    async def _make(self, client: Client, call: Call) -> None:
        with anyio.CancelScope() as scope:
            self._scopes[call.number] = scope
            mark = mark_of(call)
            arguments = {"number": call.number, "text": mark, "query": mark}
            self.answers[call.number] = await client.call_tool(call.skill, arguments)

    async def _given_up(self, step: tuple[Call, ...]) -> None:
        """Give up the calls that are to be cancelled, each once it runs or has its answer."""
        for call in step:
            if call.cancelled:
                await eventually(
                    lambda number=call.number: (
                        number in self.answers or number in reached(self.directory)
                    )
                )
                self._scopes[call.number].cancel()

    def __post_init__(self) -> None:
        self._scopes: dict[int, anyio.CancelScope] = {}

    def recorded(self) -> dict[int, list[Any]]:
        """Return the rows of each call, by its number."""
        rows: dict[int, list[Any]] = {}
        for record in self.audit.records:
            rows.setdefault(record.inputs["number"], []).append(record)
        return rows

    def check(self) -> None:
        ran = reached(self.directory)
        rows = self.recorded()
        assert len(ran) == len(set(ran))
        succeeded: dict[str, set[str]] = {agent: set() for agent in AGENTS}
        for step in self.plan.steps:
            for call in step:
                [row] = rows[call.number]
                assert (row.agent, row.skill) == (call.agent, call.skill)
                assert (row.policy_decision == "allow") == (call.number in ran)
                self._check_order(call, step, succeeded[call.agent], ran)
                self._check_answer(call, row.outcome)
            for call in step:
                if rows[call.number][0].outcome == "completed":
                    succeeded[call.agent].add(call.skill)

    def _check_order(
        self, call: Call, step: tuple[Call, ...], seen: set[str], ran: list[int]
    ) -> None:
        before = set(self.plan.requires[call.agent].get(call.skill, ()))
        together = {c.skill for c in step if c.agent == call.agent}
        if call.skill not in self.plan.grants[call.agent]:
            assert call.number not in ran
        elif before <= seen:
            assert call.number in ran
        elif not before <= seen | together:
            assert call.number not in ran
        elif call.number in ran:
            # Issued beside its prerequisites, and judged after their results had gone out.
            for skill in before - seen:
                beside = [c.number for c in step if (c.agent, c.skill) == (call.agent, skill)]
                assert any(
                    number in ran and ran.index(number) < ran.index(call.number)
                    for number in beside
                )

    def _check_answer(self, call: Call, outcome: str) -> None:
        if call.number not in self.answers:
            assert call.cancelled
            return
        answer = self.answers[call.number]
        [block] = answer.content
        text = getattr(block, "text", "")
        assert answer.is_error == (outcome != "completed")
        if outcome != "refused" and self.plan.tools[call.skill] in REPEATING:
            assert mark_of(call) in text
        if outcome == "refused":
            assert text.startswith((f"{call.skill} requires ", f"{call.skill} is not one of "))


async def follow(plan: Plan) -> None:
    with TemporaryDirectory() as name:
        directory, audit = Path(name), MemoryAuditSink()
        async with (
            opened(workspace(directory, plan), audit) as run,
            serving(run, audit) as gateway,
            AsyncExitStack() as stack,
        ):
            clients = {
                (agent, era): await stack.enter_async_context(gateway.over_http(agent, era))
                for agent in AGENTS
                for era in ERAS
            }
            course = Course(directory, plan, audit)
            await course.take(clients)
            course.check()


@pytest.mark.timeout(60 + 15 * EXAMPLES)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.data_too_large],
    # What happens at once does not happen the same way twice: a failure is shown as it was found.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
@given(plans())
def test_whatever_agents_do_at_once_the_order_of_each_holds(plan: Plan) -> None:
    anyio.run(follow, plan)
