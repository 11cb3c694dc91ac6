import pytest

from interceptors import (
    UNKNOWN_TO_ALL,
    GateUnavailable,
    PrerequisiteInterceptor,
    Refused,
    Rules,
    SkillState,
    StandingUnavailable,
    UnmetPrerequisites,
)
from tests.support.calls import COMPLETED, NEVER, Neighbour, make_call, requires, standing

pytestmark = pytest.mark.anyio

RULES = Rules(requires({"c": ["a", "b"]}))
DONE = SkillState.COMPLETED
NO_STANDING = StandingUnavailable("ledger unavailable")


async def test_a_guarded_call_is_refused_and_goes_no_further() -> None:
    outcome = await PrerequisiteInterceptor(RULES)(make_call("c"), NEVER)
    assert isinstance(outcome, Refused)
    assert isinstance(outcome.refusal, UnmetPrerequisites)
    assert [missing.skill for missing in outcome.refusal.missing] == ["a", "b"]


async def test_a_guarded_call_goes_on_once_all_prerequisites_have_completed() -> None:
    call = make_call("c", standing=standing(a=DONE, b=DONE))
    proceed = Neighbour()
    assert await PrerequisiteInterceptor(RULES)(call, proceed) is COMPLETED
    assert proceed.calls == [call]


@pytest.mark.parametrize("state", [state for state in SkillState if state is not DONE])
async def test_nothing_but_a_success_satisfies(state: SkillState) -> None:
    call = make_call("c", standing=standing(a=DONE, b=state))
    assert isinstance(await PrerequisiteInterceptor(RULES)(call, NEVER), Refused)


@pytest.mark.parametrize("skill", ["a", "b", "free"])
async def test_what_is_not_guarded_goes_on(skill: str) -> None:
    call = make_call(skill, standing=UNKNOWN_TO_ALL)
    assert await PrerequisiteInterceptor(RULES)(call, Neighbour()) is COMPLETED


@pytest.mark.parametrize("skill", ["a", "c"])
async def test_without_a_standing_what_the_rules_name_is_refused(skill: str) -> None:
    call = make_call(skill, standing=NO_STANDING)
    outcome = await PrerequisiteInterceptor(RULES)(call, NEVER)
    assert outcome == Refused(GateUnavailable("ledger unavailable"))


async def test_without_a_standing_what_the_rules_do_not_name_goes_on() -> None:
    call = make_call("free", standing=NO_STANDING)
    assert await PrerequisiteInterceptor(RULES)(call, Neighbour()) is COMPLETED


async def test_fail_open_lets_pass_what_cannot_be_judged_and_nothing_else() -> None:
    interceptor = PrerequisiteInterceptor(RULES, fail_open=True)
    assert await interceptor(make_call("c", standing=NO_STANDING), Neighbour()) is COMPLETED
    assert isinstance(await interceptor(make_call("c"), NEVER), Refused)
