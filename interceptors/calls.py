"""What one call is: who makes it, of what, with which arguments, knowing what."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from types import MappingProxyType
from typing import Final, NewType, TypeAlias, Union, final

JsonValue: TypeAlias = Union[bool, int, float, str, "list[JsonValue]", "dict[str, JsonValue]", None]
"""A value as JSON can hold it."""

JsonObject: TypeAlias = Mapping[str, JsonValue]
"""A JSON object; never changed once it is part of a call or an outcome."""

RunId = NewType("RunId", str)
AgentId = NewType("AgentId", str)
SkillId = NewType("SkillId", str)
CallId = NewType("CallId", str)
DecisionId = NewType("DecisionId", str)


@final
@dataclass(frozen=True, slots=True)
class Scope:
    """Whose context we speak of: one agent in one run.

    Raises:
        ValueError: when the run or the agent is empty; a shared bucket for all callers is the
            fault that this type exists to prevent.
    """

    run: RunId
    agent: AgentId

    def __post_init__(self) -> None:
        if not self.run or not self.agent:
            raise ValueError("a scope needs a run and an agent, both non-empty")


@final
@dataclass(frozen=True, slots=True)
class ToolRef:
    """One tool on one MCP server."""

    server: str
    name: str


@final
@dataclass(frozen=True, slots=True)
class NoTool:
    """Stands where no tool does: the name that was called is not granted to the agent."""


@final
@dataclass(frozen=True, slots=True)
class BrokenArguments:
    """Arguments that are no JSON object.

    Attributes:
        text: the arguments as they were sent.
        problem: what is wrong with them, as a clause (`they are not valid JSON`).
    """

    text: str
    problem: str


class Via(Enum):
    """The executor from which a call came."""

    MODEL = "model"
    GATEWAY = "gateway"


class SkillState(Enum):
    """What became of a skill in a scope, as far as the agent has seen."""

    NOT_CALLED = "not called"
    UNSUCCESSFUL = "unsuccessful"
    RUNNING = "running"
    COMPLETED = "completed"


@final
@dataclass(frozen=True, slots=True)
class Standing:
    """What the ledger said of a scope at the moment a call was issued.

    Attributes:
        states: the skills that were asked about; one that is absent was not called.
    """

    states: Mapping[SkillId, SkillState]

    def of(self, skill: SkillId) -> SkillState:
        return self.states.get(skill, SkillState.NOT_CALLED)


@final
@dataclass(frozen=True, slots=True)
class StandingUnavailable:
    """The ledger could not say.

    Attributes:
        reason: why, as a clause that an operator can act on (`ledger unavailable`).
    """

    reason: str


UNKNOWN_TO_ALL: Final = Standing(MappingProxyType({}))
"""The standing of an agent that has no rules: nobody asked the ledger."""

Progress: TypeAlias = Callable[[float, float | None, str | None], Awaitable[None]]
"""Receives progress of a running call: done, total and a message."""


async def no_progress(_done: float, _total: float | None, _message: str | None) -> None:
    """Receive progress that nobody asked for."""


Ask: TypeAlias = Callable[[str, JsonObject], Awaitable[JsonObject]]
"""Sends a server's request, a method and its params, to whoever made a call; returns the result."""


async def _ask_nobody(method: str, _params: JsonObject) -> JsonObject:
    raise LookupError(f"there is nobody to answer {method}")


@final
@dataclass(frozen=True, slots=True)
class Dialogue:
    """What a server may ask of whoever makes a call, and what it is told that had asked before.

    Attributes:
        capabilities: the MCP capabilities of the caller by which it can be asked; none is nobody.
        ask: how it is asked while the call is under way.
        told: the fields of a call that is made again, with the answers to what was asked.
        owner: tells one caller from another.
    """

    capabilities: JsonObject = field(default_factory=dict)
    owner: str = ""
    ask: Ask = field(default=_ask_nobody, compare=False)
    told: JsonObject = field(default_factory=dict)


NOBODY: Final = Dialogue()
"""The dialogue of a call whose caller cannot be asked anything."""


@final
@dataclass(frozen=True, slots=True)
class ToolCall:
    """One attempt of one agent to use one skill.

    Attributes:
        id: the executor's id for the call (the model's tool call id, the JSON-RPC request id).
        decision: the id under which the gate's decision on this call is recorded everywhere.
        skill: the skill, or the name that was sent when it is not one of the agent's.
        tool: the tool behind the skill.
        arguments: what goes to the tool, the skill's fixed arguments included.
        standing: what the agent had seen when it issued the call.
        meta: entries of the caller's MCP `_meta` that belong to the application.
        progress: where progress of the tool goes.
        dialogue: what the tool may ask of the caller.
        issued: when the agent issued the call, in UTC; the calls of one turn share the moment.
    """

    id: CallId
    decision: DecisionId
    scope: Scope
    skill: SkillId
    tool: ToolRef | NoTool
    arguments: JsonObject | BrokenArguments
    via: Via
    standing: Standing | StandingUnavailable
    meta: JsonObject = field(default_factory=dict)
    progress: Progress = field(default=no_progress, compare=False)
    dialogue: Dialogue = NOBODY
    issued: datetime = field(default_factory=partial(datetime.now, UTC))
