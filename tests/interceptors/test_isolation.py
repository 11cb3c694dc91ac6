from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias

import anyio
import pytest

from interceptors import (
    AgentId,
    BrokenArguments,
    Completed,
    Failed,
    GateUnavailable,
    Handler,
    IsolatedInterceptor,
    Outcome,
    PermissionDenied,
    Raised,
    Redactor,
    Refused,
    RunId,
    SkillState,
    TimedOut,
    ToolCall,
    ToolResult,
    Via,
    Withheld,
)
from tests.support.calls import COMPLETED, NEVER, SCOPE, Neighbour, make_call, standing

pytestmark = pytest.mark.anyio

User: TypeAlias = Callable[[ToolCall, Handler], Awaitable[Outcome]]
NO = Refused(Withheld("mine", "Not today."))
DENIED = Refused(GateUnavailable("ledger unavailable"))


async def outcome_of(
    user: User, proceed: Handler, call: ToolCall | None = None, *, limit: float = 0.05
) -> Outcome:
    isolated = IsolatedInterceptor("mine", user, limit, Redactor())
    with anyio.fail_after(5):
        return await isolated(call or make_call(), proceed)


def refused(problem: str) -> Refused:
    return Refused(GateUnavailable(f"interceptor mine failed: {problem}"))


def failed(problem: str) -> Failed:
    return Failed(Raised("mine", problem))


async def test_what_it_passes_on_comes_through_unchanged() -> None:
    async def user(call: ToolCall, proceed: Handler) -> Outcome:
        return await proceed(call)

    for outcome in (COMPLETED, DENIED, Failed(TimedOut(1))):
        assert await outcome_of(user, Neighbour(outcome)) is outcome


async def test_one_that_holds_off_the_end_of_its_time_does_not_go_on() -> None:
    async def user(call: ToolCall, proceed: Handler) -> Outcome:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.1)
            return await proceed(call)

    assert await outcome_of(user, NEVER) == refused("it took longer than 0.05 seconds")


async def test_one_that_swallows_the_end_of_its_time_does_not_go_on() -> None:
    async def user(call: ToolCall, proceed: Handler) -> Outcome:
        try:
            await anyio.sleep_forever()
        except BaseException:  # noqa: BLE001  what a bad interceptor does
            return await proceed(call)

    assert await outcome_of(user, NEVER) == refused("it took longer than 0.05 seconds")


async def test_one_that_answers_after_its_time_is_not_heard() -> None:
    async def user(_call: ToolCall, _proceed: Handler) -> Outcome:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.1)
        return COMPLETED

    assert await outcome_of(user, NEVER) == refused("it took longer than 0.05 seconds")


async def test_its_own_refusal_stands() -> None:
    async def user(_call: ToolCall, _proceed: Handler) -> Outcome:
        return NO

    assert await outcome_of(user, NEVER) == NO


async def test_its_own_refusal_bears_its_name_and_no_other() -> None:
    async def user(_call: ToolCall, _proceed: Handler) -> Outcome:
        return Refused(Withheld("requires", "Not today."))

    assert await outcome_of(user, NEVER) == Refused(Withheld("mine", "Not today."))


async def test_it_does_not_refuse_in_the_name_of_the_gate() -> None:
    async def user(_call: ToolCall, _proceed: Handler) -> Outcome:
        return Refused(PermissionDenied("server bar is strict"))

    outcome = await outcome_of(user, NEVER)
    assert isinstance(outcome, Refused)
    assert isinstance(outcome.refusal, GateUnavailable)


async def test_it_may_answer_without_the_tool() -> None:
    async def user(_call: ToolCall, _proceed: Handler) -> Outcome:
        return COMPLETED

    assert await outcome_of(user, NEVER) is COMPLETED


async def test_it_may_change_the_result() -> None:
    other = Completed(ToolResult())

    async def user(call: ToolCall, proceed: Handler) -> Outcome:
        await proceed(call)
        return other

    assert await outcome_of(user, Neighbour()) is other


async def test_raising_before_it_proceeded_is_a_refusal() -> None:
    async def user(_call: ToolCall, _proceed: Handler) -> Outcome:
        raise ValueError("no")

    assert await outcome_of(user, NEVER) == refused("it raised ValueError: no")


async def test_raising_before_there_is_anything_to_await_is_a_refusal() -> None:
    def user(_call: ToolCall, _proceed: Handler) -> Awaitable[Outcome]:
        raise ValueError("no")

    assert await outcome_of(user, NEVER) == refused("it raised ValueError: no")


async def test_raising_after_it_proceeded_is_a_failure() -> None:
    async def user(call: ToolCall, proceed: Handler) -> Outcome:
        await proceed(call)
        raise ValueError("no")

    assert await outcome_of(user, Neighbour()) == failed("it raised ValueError: no")


async def test_an_exception_whose_text_raises_is_an_outcome_too() -> None:
    class BrokenError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    async def user(_call: ToolCall, _proceed: Handler) -> Outcome:
        raise BrokenError

    assert await outcome_of(user, NEVER) == refused("it raised BrokenError")


async def test_hanging_before_it_proceeded_is_a_refusal() -> None:
    async def user(_call: ToolCall, _proceed: Handler) -> Outcome:
        await anyio.sleep_forever()
        return COMPLETED

    assert await outcome_of(user, NEVER) == refused("it took longer than 0.05 seconds")


async def test_hanging_after_it_proceeded_is_a_failure() -> None:
    async def user(call: ToolCall, proceed: Handler) -> Outcome:
        await proceed(call)
        await anyio.sleep_forever()
        return COMPLETED

    assert await outcome_of(user, Neighbour()) == failed("it took longer than 0.05 seconds")


async def test_hanging_after_it_gave_up_what_it_proceeded_to_is_a_failure() -> None:
    async def user(call: ToolCall, proceed: Handler) -> Outcome:
        with anyio.move_on_after(0.01):
            await proceed(call)
        await anyio.sleep_forever()
        return COMPLETED

    async def slow(_call: ToolCall, /) -> Outcome:
        await anyio.sleep_forever()
        return COMPLETED

    assert await outcome_of(user, slow) == failed("it took longer than 0.05 seconds")


async def test_a_slow_tool_does_not_count_against_its_limit() -> None:
    async def user(call: ToolCall, proceed: Handler) -> Outcome:
        return await proceed(call)

    async def slow(_call: ToolCall, /) -> Outcome:
        await anyio.sleep(0.2)
        return COMPLETED

    assert await outcome_of(user, slow) is COMPLETED


async def test_its_time_before_and_after_the_tool_is_counted_together() -> None:
    async def user(call: ToolCall, proceed: Handler) -> Outcome:
        await anyio.sleep(0.3)
        outcome = await proceed(call)
        await anyio.sleep(0.3)
        return outcome

    assert await outcome_of(user, Neighbour(), limit=0.5) == failed(
        "it took longer than 0.5 seconds"
    )


async def test_it_proceeds_at_most_once() -> None:
    async def user(call: ToolCall, proceed: Handler) -> Outcome:
        await proceed(call)
        return await proceed(call)

    proceed = Neighbour()
    assert await outcome_of(user, proceed) == failed(
        "it raised RuntimeError: an interceptor may proceed once, and before it returns"
    )
    assert len(proceed.calls) == 1


async def test_a_passage_that_it_kept_leads_nowhere_later() -> None:
    kept: list[Handler] = []

    async def user(_call: ToolCall, proceed: Handler) -> Outcome:
        kept.append(proceed)
        return NO

    proceed = Neighbour()
    assert await outcome_of(user, proceed) == NO
    with pytest.raises(RuntimeError, match="before it returns"):
        await kept[0](make_call())
    assert proceed.calls == []


async def test_it_cannot_answer_while_the_tool_still_runs() -> None:
    async with anyio.create_task_group() as tasks:

        async def hang(_call: ToolCall, /) -> Outcome:
            await anyio.sleep_forever()
            return COMPLETED

        async def go_on(proceed: Handler, call: ToolCall) -> None:
            await proceed(call)

        async def user(call: ToolCall, proceed: Handler) -> Outcome:
            tasks.start_soon(go_on, proceed, call)
            await anyio.wait_all_tasks_blocked()
            return COMPLETED

        outcome = await outcome_of(user, hang, limit=5)
        tasks.cancel_scope.cancel()
    assert outcome == failed(
        "it raised RuntimeError: it returned before what it proceeded to had ended"
    )


@pytest.mark.parametrize(
    "changed",
    [
        make_call("other"),
        make_call(scope=replace(SCOPE, agent=AgentId("sibling"))),
        make_call(scope=replace(SCOPE, run=RunId("another"))),
        make_call(standing=standing(a=SkillState.COMPLETED)),
        make_call(via=Via.GATEWAY),
        make_call(decision="mine"),
        make_call(id="2"),
        make_call(meta={"a": 1}),
    ],
)
async def test_it_changes_nothing_of_a_call_but_its_arguments(changed: ToolCall) -> None:
    async def user(_call: ToolCall, proceed: Handler) -> Outcome:
        return await proceed(changed)

    assert await outcome_of(user, NEVER) == refused(
        "it raised ValueError: an interceptor may change the arguments of a call, and nothing else"
    )


async def test_it_may_change_the_arguments() -> None:
    async def user(call: ToolCall, proceed: Handler) -> Outcome:
        return await proceed(replace(call, arguments={"a": 2}))

    proceed = Neighbour()
    assert await outcome_of(user, proceed, make_call(arguments={"a": 1})) is COMPLETED
    assert proceed.calls == [make_call(arguments={"a": 2})]


async def test_what_it_changes_in_place_is_not_what_was_issued() -> None:
    async def user(call: ToolCall, proceed: Handler) -> Outcome:
        arguments = call.arguments
        assert isinstance(arguments, dict)
        arguments["nested"]["a"] = 2
        return await proceed(call)

    issued, proceed = make_call(arguments={"nested": {"a": 1}}), Neighbour()
    await outcome_of(user, proceed, issued)
    assert issued.arguments == {"nested": {"a": 1}}
    assert [call.arguments for call in proceed.calls] == [{"nested": {"a": 2}}]


async def test_a_secret_that_an_exception_is_cut_at_is_not_shown_in_half() -> None:
    async def user(_call: ToolCall, _proceed: Handler) -> Outcome:
        raise RuntimeError("x" * 190 + "supersecretvalue1234")

    isolated = IsolatedInterceptor("mine", user, 1, Redactor(["supersecretvalue1234"]))
    assert "supersecret" not in str(await isolated(make_call(), NEVER))


class Panic(BaseException):
    """What a library in another language may raise."""


async def test_what_is_no_exception_but_for_cancellation_is_a_fault_too() -> None:
    async def user(_call: ToolCall, _proceed: Handler) -> Outcome:
        raise Panic("out of memory")

    outcome = await outcome_of(user, NEVER)
    assert outcome == Refused(
        GateUnavailable("interceptor mine failed: it raised Panic: out of memory")
    )


async def test_broken_arguments_pass_through_it() -> None:
    async def user(call: ToolCall, proceed: Handler) -> Outcome:
        return await proceed(call)

    broken = make_call(arguments=BrokenArguments("{", "they are not valid JSON"))
    proceed = Neighbour()
    assert await outcome_of(user, proceed, broken) is COMPLETED
    assert proceed.calls == [broken]


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        (None, "it raised TypeError: it returned NoneType, which is no outcome"),
        ("done", "it raised TypeError: it returned str, which is no outcome"),
        (True, "it raised TypeError: it returned bool, which is no outcome"),
        (Completed("done"), "it raised AttributeError: "),  # type: ignore[arg-type]  # the point
        (Completed(ToolResult(("x",))), "it raised AttributeError: "),  # type: ignore[arg-type]  # the point
        (Failed("broken"), "it raised AssertionError: "),  # type: ignore[arg-type]  # the point
        (Refused("no"), "it raised ValueError: "),  # type: ignore[arg-type]  # the point
    ],
)
async def test_what_is_no_outcome_is_a_fault(returned: object, problem: str) -> None:
    async def before(_call: ToolCall, _proceed: Handler) -> Outcome:
        return returned  # type: ignore[return-value]  # what untyped code may do

    async def after(call: ToolCall, proceed: Handler) -> Outcome:
        await proceed(call)
        return returned  # type: ignore[return-value]  # what untyped code may do

    refusal = await outcome_of(before, NEVER)
    assert isinstance(refusal, Refused)
    assert isinstance(refusal.refusal, GateUnavailable)
    assert problem in refusal.refusal.reason
    failure = await outcome_of(after, Neighbour())
    assert isinstance(failure, Failed)
    assert isinstance(failure.failure, Raised)


async def test_it_cannot_turn_a_refusal_into_a_result() -> None:
    async def user(call: ToolCall, proceed: Handler) -> Outcome:
        await proceed(call)
        return COMPLETED

    assert await outcome_of(user, Neighbour(DENIED)) is DENIED


async def test_a_refusal_from_within_outlives_its_exception_and_its_hanging() -> None:
    async def raising(call: ToolCall, proceed: Handler) -> Outcome:
        await proceed(call)
        raise ValueError

    async def hanging(call: ToolCall, proceed: Handler) -> Outcome:
        await proceed(call)
        await anyio.sleep_forever()
        return COMPLETED

    assert await outcome_of(raising, Neighbour(DENIED)) is DENIED
    assert await outcome_of(hanging, Neighbour(DENIED)) is DENIED


async def test_it_cannot_call_refused_what_reached_the_server() -> None:
    async def user(call: ToolCall, proceed: Handler) -> Outcome:
        await proceed(call)
        return NO

    assert await outcome_of(user, Neighbour()) == failed(
        "it raised ValueError: it refused a call that had gone on"
    )


async def test_cancellation_passes_through_it() -> None:
    async def user(call: ToolCall, proceed: Handler) -> Outcome:
        return await proceed(call)

    async def hang(_call: ToolCall, /) -> Outcome:
        await anyio.sleep_forever()
        return COMPLETED

    with anyio.move_on_after(0.01) as scope:
        await outcome_of(user, hang)
    assert scope.cancelled_caught


async def test_calls_through_one_instance_do_not_touch_each_other() -> None:
    outcomes: dict[str, Outcome] = {}

    async def user(call: ToolCall, proceed: Handler) -> Outcome:
        if call.skill == "raise":
            raise ValueError
        if call.skill == "hang":
            await anyio.sleep_forever()
        if call.skill == "refuse":
            return NO
        return await proceed(call)

    isolated = IsolatedInterceptor("mine", user, 0.05, Redactor())

    async def slow(_call: ToolCall, /) -> Outcome:
        await anyio.sleep(0.2)
        return COMPLETED

    async def attempt(skill: str) -> None:
        outcomes[skill] = await isolated(make_call(skill), slow)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for skill in ("raise", "hang", "refuse", "pass", "pass too"):
                tasks.start_soon(attempt, skill)
    assert outcomes == {
        "raise": refused("it raised ValueError"),
        "hang": refused("it took longer than 0.05 seconds"),
        "refuse": NO,
        "pass": COMPLETED,
        "pass too": COMPLETED,
    }
