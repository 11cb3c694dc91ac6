"""The order rules of one agent, and the way from a standing to a guarded skill."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

from interceptors.calls import SkillId, SkillState, Standing
from interceptors.outcomes import Missing, UnmetPrerequisites


@final
@dataclass(frozen=True, slots=True)
class Rules:
    """Which skills must have succeeded before which may be called.

    Attributes:
        requires: guarded skill -> its prerequisites, in the order in which the rule names them.
            Free of cycles: the topology is validated before rules are made of it.

    """

    requires: Mapping[SkillId, tuple[SkillId, ...]]

    def __bool__(self) -> bool:
        return bool(self.requires)

    def prerequisites(self) -> frozenset[SkillId]:
        """Return every skill that is a prerequisite of another."""
        return frozenset(skill for skills in self.requires.values() for skill in skills)

    def steps(self, skill: SkillId) -> tuple[SkillId, ...]:
        """Return all that must come before `skill`, direct or not, first named first."""
        found: dict[SkillId, None] = {}
        waiting = list(self.requires.get(skill, ()))
        while waiting:
            step = waiting.pop(0)
            if step not in found:
                found[step] = None
                waiting += self.requires.get(step, ())
        return tuple(found)

    def unmet(self, skill: SkillId, standing: Standing) -> tuple[UnmetPrerequisites, ...]:
        """Return what keeps `skill` from being called, in a tuple of one, or nothing.

        The way ends at a step that has completed, and at one that is under way: the result of that
        one, which is still to be read, tells what may be missing before it.
        """
        missing = tuple(
            Missing(step, standing.of(step))
            for step in self.requires.get(skill, ())
            if standing.of(step) is not SkillState.COMPLETED
        )
        if not missing:
            return ()
        way = self._unmet_way(skill, standing)
        unmet = [step for step in self.steps(skill) if step in way]
        awaited = tuple(step for step in unmet if self._is_awaited(step, standing))
        waiting = [step for step in unmet if step not in awaited]
        layers: list[tuple[SkillId, ...]] = []
        while layer := tuple(step for step in waiting if not self._follows(step, waiting)):
            layers.append(layer)
            waiting = [step for step in waiting if step not in layer]
        return (UnmetPrerequisites(missing, awaited, tuple(layers)),)

    def _unmet_way(self, skill: SkillId, standing: Standing) -> frozenset[SkillId]:
        """Return the steps before `skill` that are reached through unmet ones, and are unmet."""
        found: set[SkillId] = set()
        waiting = [skill]
        while waiting:
            for step in self.requires.get(waiting.pop(), ()):
                if step not in found and standing.of(step) is not SkillState.COMPLETED:
                    found.add(step)
                    waiting.append(step)
        return frozenset(found)

    def _is_awaited(self, step: SkillId, standing: Standing) -> bool:
        """Return whether `step` is under way and has passed the gate.

        One that is issued together with its own prerequisite is refused in the same turn: it is to
        be called again, not to be read.
        """
        return standing.of(step) is SkillState.RUNNING and all(
            standing.of(before) is SkillState.COMPLETED for before in self.requires.get(step, ())
        )

    def _follows(self, step: SkillId, others: Collection[SkillId]) -> bool:
        """Return whether one of `others` must come directly before `step`."""
        return any(before in others for before in self.requires.get(step, ()))


NO_RULES = Rules(MappingProxyType({}))
