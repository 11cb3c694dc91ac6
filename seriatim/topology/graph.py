"""The order rules of one agent as a graph: cycles, and what lies before what."""

from collections.abc import Mapping, Sequence

from interceptors import SkillId


def cycles(requires: Mapping[SkillId, Sequence[SkillId]]) -> tuple[tuple[SkillId, ...], ...]:
    """Return cycles such that breaking each breaks them all, in the order in which rules stand.

    Each begins with the member whose rule stands first, and names no member twice: `(a, b)` says
    that `a` requires `b`, which requires `a`.
    """
    place = {skill: index for index, skill in enumerate(requires)}
    found: dict[tuple[SkillId, ...], None] = {}
    done: set[SkillId] = set()
    for start in requires:
        # A way, and for each skill on it the requirements that are still to be followed. A stack,
        # because a chain of rules may be longer than Python's own.
        way: dict[SkillId, list[SkillId]] = {}
        if start not in done:
            way[start] = list(requires[start])
        while way:
            skill, waiting = next(reversed(way.items()))
            if not waiting:
                done.add(skill)
                del way[skill]
                continue
            step = waiting.pop(0)
            if step in way:
                members = list(way)[list(way).index(step) :]
                first = members.index(min(members, key=place.__getitem__))
                found[(*members[first:], *members[:first])] = None
            elif step not in done:
                way[step] = list(requires.get(step, ()))
    return tuple(sorted(found, key=lambda cycle: place[cycle[0]]))


def dependants(
    skill: SkillId, requires: Mapping[SkillId, Sequence[SkillId]]
) -> tuple[SkillId, ...]:
    """Return the skills that require `skill`, directly or by way of others, in rule order."""
    reached = {skill}
    waiting = [skill]
    while waiting:
        step = waiting.pop()
        for guarded, steps in requires.items():
            if step in steps and guarded not in reached:
                reached.add(guarded)
                waiting.append(guarded)
    return tuple(guarded for guarded in requires if guarded in reached - {skill})
