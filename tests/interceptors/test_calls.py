import pytest

from interceptors import UNKNOWN_TO_ALL, AgentId, RunId, Scope, SkillId, SkillState, no_progress
from tests.support.calls import make_call, standing


@pytest.mark.parametrize(("run", "agent"), [("", "a"), ("r", ""), ("", "")])
def test_a_scope_is_never_empty(run: str, agent: str) -> None:
    with pytest.raises(ValueError, match="both non-empty"):
        Scope(RunId(run), AgentId(agent))


def test_a_skill_of_which_nothing_is_known_was_not_called() -> None:
    assert UNKNOWN_TO_ALL.of(SkillId("a")) is SkillState.NOT_CALLED
    assert standing(a=SkillState.RUNNING).of(SkillId("a")) is SkillState.RUNNING


def test_a_call_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        make_call().skill = SkillId("x")  # type: ignore[misc]  # the point of the test


@pytest.mark.anyio
async def test_progress_that_nobody_asked_for_is_dropped() -> None:
    await no_progress(1, None, None)
