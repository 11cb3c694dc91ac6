from hypothesis import given
from hypothesis import strategies as st

from interceptors import SkillId
from seriatim.topology.graph import cycles, dependants

A, B, C, D = (SkillId(name) for name in "abcd")

RULES = st.dictionaries(
    st.sampled_from([A, B, C, D]), st.lists(st.sampled_from([A, B, C, D]), min_size=1, unique=True)
)


def test_a_cycle_begins_with_the_rule_that_stands_first() -> None:
    assert cycles({B: [C], C: [A], A: [B]}) == ((B, C, A),)


def test_rules_that_share_a_prerequisite_are_no_cycle() -> None:
    assert cycles({D: [B, C], C: [A], B: [A]}) == ()


def test_a_chain_may_be_longer_than_pythons_stack() -> None:
    chain = {SkillId(str(n)): [SkillId(str(n + 1))] for n in range(5_000)}
    assert cycles(chain) == ()
    assert len(dependants(SkillId("5000"), chain)) == 5_000


def test_dependants_are_those_that_wait_directly_or_not() -> None:
    assert dependants(A, {C: [B], B: [A], D: [C]}) == (C, B, D)


@given(RULES)
def test_there_is_a_cycle_exactly_when_some_skill_waits_for_itself(
    rules: dict[SkillId, list[SkillId]],
) -> None:
    found = cycles(rules)
    waits = any(
        skill in rules[other] for skill in rules for other in (skill, *_after(skill, rules))
    )
    assert bool(found) == waits
    for cycle in found:
        following = (*cycle[1:], cycle[0])
        assert all(step in rules[skill] for skill, step in zip(cycle, following, strict=True))


def _after(skill: SkillId, rules: dict[SkillId, list[SkillId]]) -> set[SkillId]:
    """Return the guarded skills that `skill` leads to through its requirements."""
    reached: set[SkillId] = set()
    waiting = list(rules[skill])
    while waiting:
        step = waiting.pop()
        if step in rules and step not in reached:
            reached.add(step)
            waiting += rules[step]
    return reached
