from hypothesis import given
from hypothesis import strategies as st

from interceptors import NO_RULES, Rules, SkillId, SkillState, Standing, UnmetPrerequisites
from tests.support.calls import requires, standing

COMPLETED, RUNNING = SkillState.COMPLETED, SkillState.RUNNING
SKILLS = [SkillId(f"s{number}") for number in range(7)]


@st.composite
def acyclic_rules(draw: st.DrawFn) -> Rules:
    """Rules in which a skill requires only skills of a lower number."""
    found = {}
    for number, skill in enumerate(SKILLS):
        before = draw(st.lists(st.sampled_from(SKILLS), unique=True, max_size=3))
        if before := [step for step in before if SKILLS.index(step) < number]:
            found[skill] = tuple(before)
    return Rules(found)


STANDINGS = st.dictionaries(st.sampled_from(SKILLS), st.sampled_from(SkillState)).map(Standing)


def naive_steps(rules: Rules, skill: SkillId) -> set[SkillId]:
    direct = set(rules.requires.get(skill, ()))
    return direct.union(*(naive_steps(rules, step) for step in direct))


def open_to(rules: Rules, skill: SkillId, completed: set[SkillId]) -> bool:
    return all(step in completed for step in rules.requires.get(skill, ()))


def only(unmet: tuple[UnmetPrerequisites, ...]) -> UnmetPrerequisites:
    (found,) = unmet
    return found


def test_no_rules_are_false_and_ask_nothing() -> None:
    assert not NO_RULES
    assert NO_RULES.unmet(SkillId("x"), standing()) == ()
    assert NO_RULES.steps(SkillId("x")) == ()
    assert Rules(requires({"b": ["a"]}))


def test_prerequisites_are_the_skills_that_are_required_and_not_those_that_require() -> None:
    rules = Rules(requires({"c": ["a", "b"], "d": ["c"]}))
    assert rules.prerequisites == {"a", "b", "c"}


def test_steps_stand_in_the_order_in_which_the_rules_first_name_them() -> None:
    rules = Rules(requires({"d": ["c", "a"], "c": ["b"], "b": ["a"]}))
    assert rules.steps(SkillId("d")) == ("c", "a", "b")


def test_what_lies_behind_a_completed_step_is_no_matter() -> None:
    rules = Rules(requires({"c": ["b"], "b": ["a"]}))
    assert rules.unmet(SkillId("c"), standing(b=COMPLETED)) == ()


def test_peers_share_a_layer_and_what_must_follow_stands_in_a_later_one() -> None:
    rules = Rules(requires({"d": ["b", "a", "c"], "b": ["z"], "a": ["z"]}))
    assert only(rules.unmet(SkillId("d"), standing())).remedy == (("c", "z"), ("b", "a"))


def test_a_step_that_is_both_direct_and_behind_another_comes_first() -> None:
    rules = Rules(requires({"c": ["a", "b"], "b": ["a"]}))
    assert only(rules.unmet(SkillId("c"), standing())).remedy == (("a",), ("b",))


def test_reading_a_result_takes_no_layer_of_the_remedy() -> None:
    rules = Rules(requires({"c": ["b", "d"], "b": ["a"]}))
    unmet = only(rules.unmet(SkillId("c"), standing(a=RUNNING)))
    assert (unmet.awaited, unmet.remedy) == (("a",), (("b", "d"),))


def test_the_way_ends_at_a_step_that_is_under_way() -> None:
    rules = Rules(requires({"c": ["b"], "b": ["a"]}))
    unmet = only(rules.unmet(SkillId("c"), standing(b=RUNNING)))
    assert (unmet.awaited, unmet.remedy) == (("b",), ())


def test_a_chain_of_hundreds_of_steps_is_no_trouble() -> None:
    chain = Rules(requires({f"s{n}": [f"s{n - 1}"] for n in range(1, 250)}))
    assert len(only(chain.unmet(SkillId("s249"), standing())).remedy) == 249


@given(acyclic_rules(), st.sampled_from(SKILLS))
def test_steps_are_the_closure_of_the_rules(rules: Rules, skill: SkillId) -> None:
    steps = rules.steps(skill)
    assert set(steps) == naive_steps(rules, skill)
    assert len(steps) == len(set(steps))


@given(acyclic_rules(), STANDINGS, st.sampled_from(SKILLS))
def test_a_skill_is_refused_when_and_only_when_a_direct_prerequisite_has_not_completed(
    rules: Rules, seen: Standing, skill: SkillId
) -> None:
    expected = [s for s in rules.requires.get(skill, ()) if seen.of(s) is not COMPLETED]
    unmet = rules.unmet(skill, seen)
    assert [m.skill for found in unmet for m in found.missing] == expected
    assert all(m.state is seen.of(m.skill) for found in unmet for m in found.missing)


@given(acyclic_rules(), STANDINGS, st.sampled_from(SKILLS))
def test_reading_what_is_awaited_and_following_the_remedy_unlocks_the_skill(
    rules: Rules, seen: Standing, skill: SkillId
) -> None:
    completed = {step for step in SKILLS if seen.of(step) is COMPLETED}
    for unmet in rules.unmet(skill, seen):
        completed.update(unmet.awaited)
        for layer in unmet.remedy:
            assert all(open_to(rules, step, completed) for step in layer)
            completed.update(layer)
    assert open_to(rules, skill, completed)


@given(acyclic_rules(), STANDINGS, st.sampled_from(SKILLS))
def test_the_remedy_names_each_unmet_step_once_and_nothing_else(
    rules: Rules, seen: Standing, skill: SkillId
) -> None:
    for unmet in rules.unmet(skill, seen):
        named = [*unmet.awaited, *(step for layer in unmet.remedy for step in layer)]
        assert len(named) == len(set(named))
        assert set(named) <= set(rules.steps(skill))
        assert not any(seen.of(step) is COMPLETED for step in named)
        assert {missing.skill for missing in unmet.missing} <= set(named)
        assert all(seen.of(step) is RUNNING for step in unmet.awaited)


@given(acyclic_rules(), STANDINGS, st.sampled_from(SKILLS))
def test_no_layer_could_come_earlier(rules: Rules, seen: Standing, skill: SkillId) -> None:
    for unmet in rules.unmet(skill, seen):
        for before, layer in zip(unmet.remedy, unmet.remedy[1:], strict=False):
            for step in layer:
                assert set(rules.requires[step]) & set(before)
