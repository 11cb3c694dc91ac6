"""What happens in a run, as data, at the moment it happens."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias, final

from interceptors import (
    AgentId,
    Cancelled,
    Completed,
    Failed,
    Handler,
    Outcome,
    Refused,
    SkillId,
    ToolCall,
    UnmetPrerequisites,
    Withheld,
)


@final
@dataclass(frozen=True, slots=True)
class AgentAsked:
    """An agent starts on a task."""

    agent: AgentId
    task: str


@final
@dataclass(frozen=True, slots=True)
class AgentSaid:
    """An agent's model wrote text, on its way or at its end."""

    agent: AgentId
    text: str


@final
@dataclass(frozen=True, slots=True)
class CallIssued:
    """An agent calls a skill."""

    call: ToolCall


@final
@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call of a skill has its outcome."""

    call: ToolCall
    outcome: Outcome
    recovered: bool
    """Whether it completed after it had been refused before in its scope."""


@final
@dataclass(frozen=True, slots=True)
class DelegationIssued:
    """An agent hands a task to a child; `call.skill` is the child's id."""

    call: ToolCall


@final
@dataclass(frozen=True, slots=True)
class DelegationEnded:
    """A delegation has its outcome."""

    call: ToolCall
    outcome: Outcome


Event: TypeAlias = (
    AgentAsked | AgentSaid | CallIssued | CallEnded | DelegationIssued | DelegationEnded
)

Listener: TypeAlias = Callable[[Event], None]
"""Told of each event as it happens; returns at once and does not raise."""


class CallWatch:
    """An interceptor that tells a listener of each call. Made for one run, and sees all its agents.

    A recovery is a call that completes, and was issued after a refusal that named a way: for want
    of a prerequisite, or by a user's interceptor. Each refused skill is recovered from once.
    """

    def __init__(self, tell: Listener) -> None:
        self._tell: Final = tell
        self._refused: Final[dict[tuple[AgentId, SkillId], datetime]] = {}

    async def __call__(self, call: ToolCall, proceed: Handler, /) -> Outcome:
        self._tell(CallIssued(call))
        outcome: Outcome = Failed(Cancelled())
        try:
            outcome = await proceed(call)
        finally:
            self._tell(CallEnded(call, outcome, self._recovered(call, outcome)))
        return outcome

    def _recovered(self, call: ToolCall, outcome: Outcome) -> bool:
        skill = (call.scope.agent, call.skill)
        match outcome:
            case Refused(UnmetPrerequisites() | Withheld()):
                self._refused[skill] = call.issued
            case Completed() if skill in self._refused and self._refused[skill] < call.issued:
                del self._refused[skill]
                return True
            case _:
                pass
        return False


@final
@dataclass(slots=True)
class Count:
    """What one agent did; delegations are counted apart from calls of skills."""

    calls: int = 0
    delegations: int = 0
    refusals: int = 0
    recoveries: int = 0


class Tally:
    """A listener that counts, per agent that was asked, in the order in which they were."""

    def __init__(self) -> None:
        self.agents: Final[dict[AgentId, Count]] = {}

    def __call__(self, event: Event) -> None:
        match event:
            case AgentAsked(agent):
                self.agents.setdefault(agent, Count())
            case CallEnded(call, outcome, recovered):
                count = self.agents.setdefault(call.scope.agent, Count())
                count.calls += 1
                count.refusals += isinstance(outcome, Refused)
                count.recoveries += recovered
            case DelegationEnded(call, outcome):
                count = self.agents.setdefault(call.scope.agent, Count())
                count.delegations += 1
                count.refusals += isinstance(outcome, Refused)
            case _:
                pass
