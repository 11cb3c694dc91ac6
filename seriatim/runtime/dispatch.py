"""Dispatch: the one way from an executor to a tool.

Both executors, the model loop and the gateway, hand a turn to `governed_mcp_call`. What an agent
has seen is read once, before any call of the turn is judged, and written when each call has ended.
"""

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final, assert_never, final

import anyio
import anyio.lowlevel

from interceptors import (
    NOBODY,
    UNKNOWN_TO_ALL,
    Attempt,
    BrokenArguments,
    CallId,
    Cancelled,
    Completed,
    DecisionId,
    Dialogue,
    Failed,
    Handler,
    JsonObject,
    Ledger,
    NoTool,
    Outcome,
    Progress,
    Refused,
    Rules,
    Scope,
    SkillId,
    SkillState,
    Standing,
    StandingUnavailable,
    ToolCall,
    Via,
    new_id,
    no_progress,
)
from seriatim.topology.models import Skill

LEDGER_SECONDS: Final = 10.0
"""How long the ledger may take before the gate counts as unable to decide."""

NO_LIMIT: Final = sys.maxsize
"""The limit of a run that may make any number of calls."""

_log: Final = logging.getLogger(__name__)


def always() -> bool:
    """Return that the agent waits for its result."""
    return True


@final
@dataclass(frozen=True, slots=True)
class Request:
    """One call as an executor received it from its agent.

    Attributes:
        id: the executor's id for it.
        name: the name that the agent used; it may be no skill of the agent's.
        meta: entries of the caller's MCP `_meta` that belong to the application.
        dialogue: what a server may ask of the agent's client.
        awaited: says whether the agent still waits for the result; one that does not, sees none.
    """

    id: CallId
    name: str
    arguments: JsonObject | BrokenArguments
    meta: JsonObject = field(default_factory=dict)
    progress: Progress = field(default=no_progress)
    dialogue: Dialogue = NOBODY
    awaited: Callable[[], bool] = field(default=always)


class Allowance:
    """Counts the calls of a run against its limit, refused ones included.

    Args:
        limit: calls that the run may make; `NO_LIMIT` for any number.
    """

    def __init__(self, limit: int) -> None:
        self.limit: Final = limit
        self.used = 0

    @property
    def exceeded(self) -> bool:
        """Whether a call has been refused for the limit."""
        return self.used > self.limit

    def take(self) -> bool:
        """Count one more call and return whether it is within the limit."""
        self.used += 1
        return self.used <= self.limit


@final
@dataclass(frozen=True, slots=True)
class GovernedAgent:
    """An agent in a run, with all that its calls go through. Made by `seriatim.runtime.assembly`.

    Attributes:
        skills: what it was granted, in the order in which it sees them.
        chain: takes a call of a granted skill to its outcome.
        not_granted: takes a call of anything else to its refusal.
        over_limit: takes a call beyond the run's allowance to its refusal.
    """

    scope: Scope
    via: Via
    skills: Mapping[SkillId, Skill]
    rules: Rules
    ledger: Ledger
    allowance: Allowance
    chain: Handler
    not_granted: Handler
    over_limit: Handler


async def governed_mcp_call(
    agent: GovernedAgent, turn: Sequence[Request], issued: datetime | None = None
) -> list[Outcome]:
    """Take the calls of one turn through the chain, side by side.

    Args:
        issued: when the agent issued the turn, in UTC; this moment unless given.

    Returns:
        One outcome for each call, in the order of the calls.
    """
    issued = issued or datetime.now(UTC)
    decisions = [DecisionId(new_id()) for _ in turn]
    standing = await _standing(agent, turn, decisions)
    # What stays so was cancelled by itself, and not with the turn.
    outcomes: list[Outcome] = [Failed(Cancelled()) for _ in turn]

    async def attempt(index: int, handler: Handler, call: ToolCall) -> None:
        outcomes[index] = await _attempt(agent, handler, call, turn[index].awaited)

    async with anyio.create_task_group() as calls:
        for index, (request, decision) in enumerate(zip(turn, decisions, strict=True)):
            call = _call(agent, request, decision, standing, issued)
            calls.start_soon(attempt, index, _handler(agent, call), call)
    return outcomes


async def _standing(
    agent: GovernedAgent, turn: Sequence[Request], decisions: Sequence[DecisionId]
) -> Standing | StandingUnavailable:
    """Return what the agent has seen, and note in the ledger what it now attempts.

    A skill that is issued in this turn and has not completed before counts as running, wherever it
    stands in the turn: no result of this turn can have been read when its calls were issued.
    """
    if not agent.rules:
        return UNKNOWN_TO_ALL
    names = [SkillId(request.name) for request in turn]
    steps = {step for skill in names for step in agent.rules.steps(skill)}
    states: dict[SkillId, SkillState] = {}
    try:
        # Shielded: the calls of a turn that is cancelled meanwhile are cancelled within the chain,
        # where that is put on record.
        with anyio.fail_after(LEDGER_SECONDS, shield=True):
            if steps:
                states |= await agent.ledger.standing(agent.scope, steps)
            for skill, decision in zip(names, decisions, strict=True):
                if skill in agent.rules.prerequisites:
                    await agent.ledger.begin(agent.scope, skill, decision)
    except Exception as error:  # noqa: BLE001  whatever the store's fault, the ledger cannot say
        _log.warning("the ledger could not be read: %s", type(error).__name__)
        return StandingUnavailable("ledger unavailable")
    for skill in names:
        if states.get(skill) is not SkillState.COMPLETED:
            states[skill] = SkillState.RUNNING
    return Standing(MappingProxyType(states))


def _call(
    agent: GovernedAgent,
    request: Request,
    decision: DecisionId,
    standing: Standing | StandingUnavailable,
    issued: datetime,
) -> ToolCall:
    skill = SkillId(request.name)
    grant = agent.skills.get(skill)
    arguments = request.arguments
    if grant and grant.fixed and not isinstance(arguments, BrokenArguments):
        arguments = {**arguments, **grant.fixed}
    return ToolCall(
        id=request.id,
        decision=decision,
        scope=agent.scope,
        skill=skill,
        tool=grant.tool if grant else NoTool(),
        arguments=arguments,
        via=agent.via,
        standing=standing,
        meta=request.meta,
        progress=request.progress,
        dialogue=request.dialogue,
        issued=issued,
    )


def _handler(agent: GovernedAgent, call: ToolCall) -> Handler:
    """Return what takes a call to its outcome; counts it towards the run's allowance."""
    if not agent.allowance.take():
        return agent.over_limit
    return agent.not_granted if isinstance(call.tool, NoTool) else agent.chain


async def _attempt(
    agent: GovernedAgent, handler: Handler, call: ToolCall, awaited: Callable[[], bool]
) -> Outcome:
    """Take one call to its outcome, and note in the ledger what the agent is about to see."""
    if call.skill not in agent.rules.prerequisites:
        return await handler(call)
    attempt = Attempt.UNSUCCESSFUL
    try:
        outcome = await handler(call)
        # Given up in the last moment: its result will not be seen.
        await anyio.lowlevel.checkpoint_if_cancelled()
        if awaited() or isinstance(outcome, Refused):
            attempt = _attempt_of(outcome)
    finally:
        # Shielded: a cancelled call must not stay on the books as running.
        with anyio.CancelScope(shield=True):
            await _finish(agent, call, attempt)
    return outcome


async def _finish(agent: GovernedAgent, call: ToolCall, attempt: Attempt) -> None:
    try:
        with anyio.fail_after(LEDGER_SECONDS):
            await agent.ledger.finish(call.scope, call.skill, call.decision, attempt)
    except Exception as error:  # noqa: BLE001  the result stands; what it would unlock stays shut
        _log.warning("the ledger could not be written: %s", type(error).__name__)


def _attempt_of(outcome: Outcome) -> Attempt:
    match outcome:
        case Completed():
            return Attempt.COMPLETED
        case Failed():
            return Attempt.UNSUCCESSFUL
        case Refused():
            return Attempt.REFUSED
        case _:
            assert_never(outcome)
