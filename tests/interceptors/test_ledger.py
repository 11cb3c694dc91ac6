"""One suite for every ledger; see `tests.support.ledgers`."""

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interceptors import AgentId, Attempt, DecisionId, Ledger, RunId, Scope, SkillId, SkillState
from tests.support.ledgers import LEDGERS, OpenLedger

pytestmark = pytest.mark.anyio

A, B = SkillId("a"), SkillId("b")
FIRST, SECOND = DecisionId("first"), DecisionId("second")
HERE = Scope(RunId("run"), AgentId("agent"))
SIBLING = Scope(RunId("run"), AgentId("sibling"))
ANOTHER_RUN = Scope(RunId("run-2"), AgentId("agent"))


@pytest.fixture(params=LEDGERS)
def open_ledger(request: pytest.FixtureRequest) -> OpenLedger:
    return LEDGERS[request.param]


async def state(ledger: Ledger, scope: Scope = HERE, skill: SkillId = A) -> SkillState:
    return (await ledger.standing(scope, [skill])).get(skill, SkillState.NOT_CALLED)


async def attempt(ledger: Ledger, result: Attempt, scope: Scope = HERE) -> None:
    await ledger.begin(scope, A, FIRST)
    await ledger.finish(scope, A, FIRST, result)


async def test_a_fresh_ledger_knows_of_no_call(open_ledger: OpenLedger) -> None:
    async with open_ledger() as ledger:
        assert await state(ledger) is SkillState.NOT_CALLED


async def test_an_attempt_runs_until_it_is_finished(open_ledger: OpenLedger) -> None:
    async with open_ledger() as ledger:
        await ledger.begin(HERE, A, FIRST)
        assert await state(ledger) is SkillState.RUNNING
        await ledger.finish(HERE, A, FIRST, Attempt.COMPLETED)
        assert await state(ledger) is SkillState.COMPLETED


async def test_a_failed_attempt_is_unsuccessful(open_ledger: OpenLedger) -> None:
    async with open_ledger() as ledger:
        await attempt(ledger, Attempt.UNSUCCESSFUL)
        assert await state(ledger) is SkillState.UNSUCCESSFUL


async def test_a_refused_attempt_leaves_no_mark(open_ledger: OpenLedger) -> None:
    async with open_ledger() as ledger:
        await attempt(ledger, Attempt.REFUSED)
        assert await state(ledger) is SkillState.NOT_CALLED
        await attempt(ledger, Attempt.UNSUCCESSFUL)
        await attempt(ledger, Attempt.REFUSED)
        assert await state(ledger) is SkillState.UNSUCCESSFUL


@pytest.mark.parametrize("later", Attempt)
async def test_completed_is_final(open_ledger: OpenLedger, later: Attempt) -> None:
    async with open_ledger() as ledger:
        await attempt(ledger, Attempt.COMPLETED)
        await ledger.begin(HERE, A, FIRST)
        assert await state(ledger) is SkillState.COMPLETED
        await ledger.finish(HERE, A, FIRST, later)
        assert await state(ledger) is SkillState.COMPLETED


async def test_a_success_after_a_failure_counts(open_ledger: OpenLedger) -> None:
    async with open_ledger() as ledger:
        await attempt(ledger, Attempt.UNSUCCESSFUL)
        await attempt(ledger, Attempt.COMPLETED)
        assert await state(ledger) is SkillState.COMPLETED


async def test_of_two_attempts_under_way_the_end_of_one_leaves_the_other_running(
    open_ledger: OpenLedger,
) -> None:
    async with open_ledger() as ledger:
        await ledger.begin(HERE, A, FIRST)
        await ledger.begin(HERE, A, SECOND)
        await ledger.finish(HERE, A, FIRST, Attempt.UNSUCCESSFUL)
        assert await state(ledger) is SkillState.RUNNING
        await ledger.finish(HERE, A, SECOND, Attempt.UNSUCCESSFUL)
        assert await state(ledger) is SkillState.UNSUCCESSFUL


async def test_a_late_finish_after_forget_is_dropped(open_ledger: OpenLedger) -> None:
    async with open_ledger() as ledger:
        await ledger.begin(HERE, A, FIRST)
        await ledger.forget(HERE.run)
        await ledger.finish(HERE, A, FIRST, Attempt.COMPLETED)
        assert await state(ledger) is SkillState.NOT_CALLED


async def test_an_attempt_from_before_forget_does_not_finish_one_begun_after_it(
    open_ledger: OpenLedger,
) -> None:
    async with open_ledger() as ledger:
        await ledger.begin(HERE, A, FIRST)
        await ledger.forget(HERE.run)
        await ledger.begin(HERE, A, SECOND)
        await ledger.finish(HERE, A, FIRST, Attempt.COMPLETED)
        assert await state(ledger) is SkillState.RUNNING


async def test_a_finish_that_nothing_began_is_dropped(open_ledger: OpenLedger) -> None:
    async with open_ledger() as ledger:
        await ledger.finish(HERE, A, FIRST, Attempt.COMPLETED)
        assert await state(ledger) is SkillState.NOT_CALLED


@pytest.mark.parametrize("other", [SIBLING, ANOTHER_RUN], ids=["sibling", "another run"])
async def test_another_scopes_success_counts_for_nothing_here(
    open_ledger: OpenLedger, other: Scope
) -> None:
    async with open_ledger() as ledger:
        await attempt(ledger, Attempt.COMPLETED, other)
        assert await state(ledger) is SkillState.NOT_CALLED
        assert await state(ledger, other) is SkillState.COMPLETED


async def test_scopes_whose_names_run_together_are_apart(open_ledger: OpenLedger) -> None:
    one, two = Scope(RunId("a:b"), AgentId("c")), Scope(RunId("a"), AgentId("b:c"))
    async with open_ledger() as ledger:
        await attempt(ledger, Attempt.COMPLETED, one)
        assert await state(ledger, two) is SkillState.NOT_CALLED


async def test_forget_drops_every_agent_of_one_run_and_no_other_run(
    open_ledger: OpenLedger,
) -> None:
    async with open_ledger() as ledger:
        for scope in (HERE, SIBLING, ANOTHER_RUN):
            await attempt(ledger, Attempt.COMPLETED, scope)
        await ledger.forget(HERE.run)
        assert await state(ledger, HERE) is SkillState.NOT_CALLED
        assert await state(ledger, SIBLING) is SkillState.NOT_CALLED
        assert await state(ledger, ANOTHER_RUN) is SkillState.COMPLETED


async def test_forgetting_a_scope_drops_one_agent_of_one_run(open_ledger: OpenLedger) -> None:
    async with open_ledger() as ledger:
        for scope in (HERE, SIBLING, ANOTHER_RUN):
            await attempt(ledger, Attempt.COMPLETED, scope)
        await ledger.begin(HERE, B, SECOND)
        await ledger.forget_scope(HERE)
        await ledger.finish(HERE, B, SECOND, Attempt.COMPLETED)
        assert set((await ledger.standing(HERE, [A, B])).values()) <= {SkillState.NOT_CALLED}
        assert await state(ledger, SIBLING) is SkillState.COMPLETED
        assert await state(ledger, ANOTHER_RUN) is SkillState.COMPLETED


async def test_standing_speaks_of_what_was_asked_and_nothing_else(
    open_ledger: OpenLedger,
) -> None:
    async with open_ledger() as ledger:
        await attempt(ledger, Attempt.COMPLETED)
        assert set(await ledger.standing(HERE, [B])) <= {B}
        assert dict(await ledger.standing(HERE, [])) == {}


async def test_a_standing_does_not_change_once_it_was_read(open_ledger: OpenLedger) -> None:
    async with open_ledger() as ledger:
        await ledger.begin(HERE, A, FIRST)
        read = await ledger.standing(HERE, [A])
        await ledger.finish(HERE, A, FIRST, Attempt.COMPLETED)
        assert read[A] is SkillState.RUNNING


SCOPES = st.sampled_from([HERE, SIBLING, ANOTHER_RUN])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("begin"), SCOPES, st.sampled_from([A, B])),
        st.tuples(st.sampled_from(Attempt), SCOPES, st.sampled_from([A, B])),
        st.tuples(st.sampled_from(["forget", "forget_scope"]), SCOPES, st.just(A)),
    ),
    max_size=30,
)


def expected(ends: list[Attempt], under_way: list[DecisionId]) -> SkillState:
    if Attempt.COMPLETED in ends:
        return SkillState.COMPLETED
    if under_way:
        return SkillState.RUNNING
    return SkillState.UNSUCCESSFUL if Attempt.UNSUCCESSFUL in ends else SkillState.NOT_CALLED


@pytest.mark.parametrize("name", LEDGERS)
@given(steps=STEPS)
def test_any_history_gives_the_states_of_a_small_model(
    name: str, steps: list[tuple[str | Attempt, Scope, SkillId]]
) -> None:
    async def play() -> None:
        model: dict[tuple[Scope, SkillId], tuple[list[Attempt], list[DecisionId]]] = {}
        async with LEDGERS[name]() as ledger:
            for number, (step, scope, skill) in enumerate(steps):
                ends, under_way = model.get((scope, skill), ([], []))
                if isinstance(step, Attempt):
                    if not under_way:
                        continue  # dispatch finishes what it began
                    await ledger.finish(scope, skill, under_way[0], step)
                    model[scope, skill] = ([*ends, step], under_way[1:])
                elif step == "begin":
                    decision = DecisionId(str(number))
                    await ledger.begin(scope, skill, decision)
                    model[scope, skill] = (ends, [*under_way, decision])
                elif step == "forget_scope":
                    await ledger.forget_scope(scope)
                    model = {key: kept for key, kept in model.items() if key[0] != scope}
                else:
                    await ledger.forget(scope.run)
                    model = {key: kept for key, kept in model.items() if key[0].run != scope.run}
                for each in (HERE, SIBLING, ANOTHER_RUN):
                    for known in (A, B):
                        assert await state(ledger, each, known) is expected(
                            *model.get((each, known), ([], []))
                        )

    anyio.run(play)
