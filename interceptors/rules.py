"""The order rules of one agent, and the way from a standing to a guarded skill."""

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from types import MappingProxyType
from typing import final

from interceptors.calls import UNKNOWN_TO_ALL, SkillId, SkillState, Standing
from interceptors.outcomes import Missing, UnmetPrerequisites


@final
@dataclass(frozen=True)  # no slots: what is derived is kept
class Rules:
    """Which skills must have succeeded before which may be called.

    Attributes:
        requires: guarded skill -> its prerequisites, in the order in which the rule names them.
            Free of cycles: the topology is validated before rules are made of it.
    """

    requires: Mapping[SkillId, tuple[SkillId, ...]]

    def __bool__(self) -> bool:
        return bool(self.requires)

    @cached_property
    def prerequisites(self) -> frozenset[SkillId]:
        """Every skill that is a prerequisite of another."""
        return frozenset(skill for skills in self.requires.values() for skill in skills)

    def steps(self, skill: SkillId) -> tuple[SkillId, ...]:
        """Return all that must come before `skill`, direct or not, first named first."""
        return tuple(self._way(self.requires.get(skill, ()), UNKNOWN_TO_ALL))

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
        way = self._way([step.skill for step in missing], standing)
        awaited = tuple(step for step in way if standing.of(step) is SkillState.RUNNING)
        return (UnmetPrerequisites(missing, awaited, _layers(way, awaited)),)

    def _way(
        self, steps: Iterable[SkillId], standing: Standing
    ) -> dict[SkillId, tuple[SkillId, ...]]:
        """Return the unmet steps, first named first, each with the unmet steps before it."""
        way: dict[SkillId, tuple[SkillId, ...]] = {}
        waiting = deque(steps)
        while waiting:
            step = waiting.popleft()
            if step in way:
                continue
            under_way = standing.of(step) is SkillState.RUNNING
            way[step] = tuple(
                earlier
                for earlier in (() if under_way else self.requires.get(step, ()))
                if standing.of(earlier) is not SkillState.COMPLETED
            )
            waiting += way[step]
        return way


def _layers(
    way: Mapping[SkillId, Sequence[SkillId]], awaited: Collection[SkillId]
) -> tuple[tuple[SkillId, ...], ...]:
    """Return the steps of a way in layers; what is awaited is read, not called: it is in none."""
    place = {step: place for place, step in enumerate(way)}
    order = TopologicalSorter(
        {
            step: [earlier for earlier in before if earlier not in awaited]
            for step, before in way.items()
            if step not in awaited
        }
    )
    order.prepare()
    layers = []
    while order.is_active():
        layer = order.get_ready()
        order.done(*layer)
        layers.append(tuple(sorted(layer, key=place.__getitem__)))
    return tuple(layers)


NO_RULES = Rules(MappingProxyType({}))
