"""The order rules of one agent, and the way from a standing to a guarded skill."""

from collections.abc import Mapping
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
        depths: dict[SkillId, int] = {}
        for step in missing:
            self._measure(step.skill, standing, depths)
        order = [step for step in self.steps(skill) if step in depths]
        awaited = tuple(step for step in order if standing.of(step) is SkillState.RUNNING)
        layers = (
            tuple(step for step in order if depths[step] == depth and step not in awaited)
            for depth in sorted(set(depths.values()))
        )
        return (UnmetPrerequisites(missing, awaited, tuple(layer for layer in layers if layer)),)

    def _measure(self, step: SkillId, standing: Standing, depths: dict[SkillId, int]) -> int:
        """Note, for an unmet step and each one before it, how many unmet layers lie before it."""
        if step not in depths:
            under_way = standing.of(step) is SkillState.RUNNING
            before = [
                self._measure(earlier, standing, depths)
                for earlier in (() if under_way else self.requires.get(step, ()))
                if standing.of(earlier) is not SkillState.COMPLETED
            ]
            # What is under way is read, not called: it makes no layer.
            depths[step] = -1 if under_way else max(before, default=-1) + 1
        return depths[step]


NO_RULES = Rules(MappingProxyType({}))
