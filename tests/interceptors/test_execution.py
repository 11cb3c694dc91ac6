from collections.abc import Awaitable, Callable

import anyio
import pytest

from interceptors import (
    BrokenArguments,
    Completed,
    Dialogue,
    Execution,
    Failed,
    Failure,
    GateUnavailable,
    InvalidArguments,
    JsonObject,
    NoTool,
    Progress,
    ProtocolError,
    Raised,
    Redactor,
    Refused,
    ServerProtocolError,
    ServerUnavailable,
    ServerUnavailableError,
    SkillId,
    TimedOut,
    ToolError,
    ToolRef,
    ToolResult,
)
from interceptors.execution import DEFAULT_TIMEOUT
from tests.support.calls import COMPLETED, make_call

pytestmark = pytest.mark.anyio


class Servers:
    """Reaches one server that does as it is told, and keeps what was sent."""

    def __init__(self, answer: Callable[[], Awaitable[Completed | Failed]]) -> None:
        self.answer = answer
        self.sent: list[tuple[ToolRef, JsonObject, JsonObject]] = []

    async def call(
        self,
        tool: ToolRef,
        arguments: JsonObject,
        meta: JsonObject,
        progress: Progress,
        _dialogue: Dialogue,
    ) -> Completed | Failed:
        self.sent.append((tool, arguments, meta))
        await progress(1, 2, "half")
        return await self.answer()


def returning(outcome: Completed | Failed) -> Servers:
    async def answer() -> Completed | Failed:
        return outcome

    return Servers(answer)


def raising(error: BaseException) -> Servers:
    async def answer() -> Completed | Failed:
        raise error

    return Servers(answer)


async def forever() -> Completed | Failed:
    await anyio.sleep_forever()
    raise AssertionError


async def test_a_call_is_sent_once_with_all_that_belongs_to_it() -> None:
    servers = returning(COMPLETED)
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(done: float, total: float | None, message: str | None) -> None:
        heard.append((done, total, message))

    call = make_call("x", arguments={"a": 1}, meta={"m": 2}, progress=hear)
    assert await Execution(servers, {}, Redactor())(call) is COMPLETED
    assert servers.sent == [(ToolRef("bar", "x"), {"a": 1}, {"m": 2})]
    assert heard == [(1, 2, "half")]


async def test_a_result_that_is_flagged_as_an_error_comes_through_unchanged() -> None:
    flagged = Failed(ToolError(ToolResult(({"type": "text", "text": "no"},))))
    assert await Execution(returning(flagged), {}, Redactor())(make_call()) is flagged


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (ServerUnavailableError("bar", "it died"), ServerUnavailable("bar", "it died")),
        (
            ServerProtocolError(-32602, "bad", ({"a": 1},)),
            ProtocolError(-32602, "bad", ({"a": 1},)),
        ),
        (ValueError("two\nlines"), Raised("execution", r"ValueError: two\nlines")),
        (TimeoutError(), Raised("execution", "TimeoutError")),
        (
            ExceptionGroup("both", [ValueError(), KeyError()]),
            Raised("execution", "ExceptionGroup: both (2 sub-exceptions)"),
        ),
    ],
)
async def test_an_exception_becomes_a_value_and_is_not_tried_again(
    error: Exception, failure: Failure
) -> None:
    servers = raising(error)
    assert await Execution(servers, {}, Redactor())(make_call()) == Failed(failure)
    assert len(servers.sent) == 1


class Interrupt(BaseException):
    """Stands for `KeyboardInterrupt`, on which the event loops themselves would act."""


async def test_what_is_no_exception_of_the_tool_passes_through() -> None:
    with pytest.raises(Interrupt):
        await Execution(raising(Interrupt()), {}, Redactor())(make_call())


async def test_a_tool_that_does_not_answer_in_time_has_timed_out() -> None:
    execution = Execution(Servers(forever), {SkillId("c"): 0.01}, Redactor())
    with anyio.fail_after(5):
        assert await execution(make_call("c")) == Failed(TimedOut(0.01))


def test_a_skill_without_a_limit_has_sixty_seconds() -> None:
    assert DEFAULT_TIMEOUT == 60


async def test_cancellation_is_no_outcome() -> None:
    reached = anyio.Event()

    async def answer() -> Completed | Failed:
        reached.set()
        return await forever()

    async def call() -> None:
        await Execution(Servers(answer), {}, Redactor())(make_call())
        raise AssertionError("a cancelled call returned")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await reached.wait()
            tasks.cancel_scope.cancel()


async def test_broken_arguments_reach_no_server() -> None:
    servers = returning(COMPLETED)
    call = make_call(arguments=BrokenArguments("{", "they are not valid JSON"))
    outcome = await Execution(servers, {}, Redactor())(call)
    assert outcome == Failed(InvalidArguments("they are not valid JSON"))
    assert servers.sent == []


async def test_a_name_behind_which_no_tool_stands_reaches_no_server() -> None:
    servers = returning(COMPLETED)
    outcome = await Execution(servers, {}, Redactor())(make_call(tool=NoTool()))
    assert outcome == Refused(GateUnavailable("no tool stands behind this name"))
    assert servers.sent == []
