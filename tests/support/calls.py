"""Calls, and the three-line neighbours of an interceptor."""

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType

from interceptors import (
    UNKNOWN_TO_ALL,
    AgentId,
    CallId,
    Completed,
    DecisionId,
    Handler,
    Outcome,
    RunId,
    Scope,
    SkillId,
    SkillState,
    Standing,
    ToolCall,
    ToolRef,
    ToolResult,
    Via,
)

SCOPE = Scope(RunId("run"), AgentId("agent"))
COMPLETED = Completed(ToolResult(({"type": "text", "text": "done"},)))


def make_call(skill: str = "c", **changes: object) -> ToolCall:
    """Return a call of `skill`; `changes` are fields of `ToolCall`."""
    fields: dict[str, object] = {
        "id": CallId("1"),
        "decision": DecisionId("decision-1"),
        "scope": SCOPE,
        "skill": SkillId(skill),
        "tool": ToolRef("bar", skill),
        "arguments": MappingProxyType({}),
        "via": Via.MODEL,
        "standing": UNKNOWN_TO_ALL,
        "issued": datetime(2026, 12, 1, tzinfo=UTC),
    }
    return ToolCall(**(fields | changes))  # type: ignore[arg-type]  # a test names what it needs


def standing(**states: SkillState) -> Standing:
    return Standing({SkillId(skill): state for skill, state in states.items()})


def requires(rules: Mapping[str, list[str]]) -> Mapping[SkillId, tuple[SkillId, ...]]:
    """Return rules as the topology writes them, in the types of the chain."""
    return {SkillId(c): tuple(SkillId(p) for p in before) for c, before in rules.items()}


class Neighbour:
    """A handler that answers with one outcome and keeps the calls that reached it."""

    def __init__(self, outcome: Outcome = COMPLETED) -> None:
        self.outcome = outcome
        self.calls: list[ToolCall] = []

    async def __call__(self, call: ToolCall, /) -> Outcome:
        self.calls.append(call)
        return self.outcome


async def never(_call: ToolCall, /) -> Outcome:
    raise AssertionError("the call went on")


NEVER: Handler = never
