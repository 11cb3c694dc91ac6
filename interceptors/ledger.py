"""The ledger: which skills have succeeded in which scope."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from interceptors.calls import DecisionId, RunId, Scope, SkillId, SkillState


class Attempt(Enum):
    """How an attempt to use a skill ended."""

    COMPLETED = "completed"
    UNSUCCESSFUL = "unsuccessful"
    REFUSED = "refused"


class Ledger(Protocol):
    """Remembers, per scope and skill, what the agent has seen. Any method may raise.

    A skill is `COMPLETED` for the life of the scope once an attempt has completed. Until then it is
    `RUNNING` while an attempt is under way, `UNSUCCESSFUL` once one has failed, and otherwise not
    called: a refused attempt leaves no mark.
    """

    async def standing(
        self, scope: Scope, skills: Collection[SkillId]
    ) -> Mapping[SkillId, SkillState]:
        """Return the state of each of `skills`; one that was not called may be left out."""
        ...

    async def begin(self, scope: Scope, skill: SkillId, decision: DecisionId) -> None:
        """Note that the attempt which `decision` is about is under way."""
        ...

    async def finish(
        self, scope: Scope, skill: SkillId, decision: DecisionId, attempt: Attempt
    ) -> None:
        """Note how an attempt that `begin` noted has ended; dropped when that was forgotten."""
        ...

    async def forget(self, run: RunId) -> None:
        """Drop all that is known of a run; attempts still under way leave no mark later."""
        ...

    async def forget_scope(self, scope: Scope) -> None:
        """Drop all that is known of one agent of a run; attempts under way leave no mark later."""
        ...


@dataclass(slots=True)
class _Entry:
    under_way: set[DecisionId] = field(default_factory=set)
    failed: bool = False
    completed: bool = False

    @property
    def state(self) -> SkillState:
        if self.completed:
            return SkillState.COMPLETED
        if self.under_way:
            return SkillState.RUNNING
        return SkillState.UNSUCCESSFUL if self.failed else SkillState.NOT_CALLED


class MemoryLedger:
    """A ledger that lives as long as the process."""

    def __init__(self) -> None:
        self._runs: dict[RunId, dict[tuple[Scope, SkillId], _Entry]] = {}

    async def standing(
        self, scope: Scope, skills: Collection[SkillId]
    ) -> Mapping[SkillId, SkillState]:
        entries = self._runs.get(scope.run, {})
        return {skill: entries[scope, skill].state for skill in skills if (scope, skill) in entries}

    async def begin(self, scope: Scope, skill: SkillId, decision: DecisionId) -> None:
        entries = self._runs.setdefault(scope.run, {})
        entries.setdefault((scope, skill), _Entry()).under_way.add(decision)

    async def finish(
        self, scope: Scope, skill: SkillId, decision: DecisionId, attempt: Attempt
    ) -> None:
        entry = self._runs.get(scope.run, {}).get((scope, skill))
        if entry is None or decision not in entry.under_way:
            return
        entry.under_way.remove(decision)
        entry.completed |= attempt is Attempt.COMPLETED
        entry.failed |= attempt is Attempt.UNSUCCESSFUL

    async def forget(self, run: RunId) -> None:
        self._runs.pop(run, None)

    async def forget_scope(self, scope: Scope) -> None:
        entries = self._runs.pop(scope.run, {})
        if kept := {key: entry for key, entry in entries.items() if key[0] != scope}:
            self._runs[scope.run] = kept
