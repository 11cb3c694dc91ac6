import re
from collections.abc import Collection
from datetime import UTC, datetime

import anyio
import pytest

from interceptors import (
    AuditInterceptor,
    AuditRecord,
    BrokenArguments,
    Completed,
    Failed,
    GateUnavailable,
    Handler,
    MemoryAuditSink,
    Missing,
    NotGranted,
    NoTool,
    Outcome,
    Raised,
    Redactor,
    Refused,
    SkillId,
    SkillState,
    TimedOut,
    ToolCall,
    ToolError,
    ToolResult,
    TraceIds,
    UnmetPrerequisites,
    Unrecorded,
    Withheld,
    refusal_text,
    timestamp,
)
from tests.support.calls import COMPLETED, NEVER, Neighbour, make_call

pytestmark = pytest.mark.anyio

A = SkillId("a")
UNMET = UnmetPrerequisites((Missing(A, SkillState.NOT_CALLED),), (), ((A,),))
DOWN = GateUnavailable("audit log unavailable")


class FailingSink(MemoryAuditSink):
    """Fails, or hangs, where it is told to."""

    def __init__(self, *, raises: Collection[str] = (), hangs: Collection[str] = ()) -> None:
        super().__init__()
        self.raises, self.hangs = raises, hangs

    async def ready(self) -> None:
        await self.fail("ready")

    async def write(self, record: AuditRecord) -> None:
        await self.fail("write")
        await super().write(record)

    async def fail(self, where: str) -> None:
        if where in self.raises:
            raise OSError("disk full")
        if where in self.hangs:
            await anyio.sleep_forever()


def audit(
    sink: MemoryAuditSink,
    *,
    secrets: Collection[str] = (),
    hidden: Collection[str] = (),
    trace: tuple[TraceIds, ...] = (),
    fail_open: bool = False,
) -> AuditInterceptor:
    return AuditInterceptor(
        sink,
        "topology",
        Redactor(secrets),
        hidden={SkillId("c"): hidden},
        current_trace=lambda: trace,
        limit=0.05,
        fail_open=fail_open,
    )


async def row_of(outcome: Outcome, call: ToolCall | None = None) -> AuditRecord:
    sink = MemoryAuditSink()
    assert await audit(sink)(call or make_call(), Neighbour(outcome)) is outcome
    (record,) = sink.records
    return record


async def test_the_row_of_a_call_that_completed() -> None:
    sink = MemoryAuditSink()
    interceptor = audit(sink, trace=(TraceIds("ab", "cd"),))
    await interceptor(make_call(arguments={"q": "x"}), Neighbour())
    (record,) = sink.records
    assert 0 <= record.duration < 5
    assert re.fullmatch(r"[0-9a-f-]{36}", record.event_id)
    assert record == AuditRecord(
        event_type="skill.executed",
        event_id=record.event_id,
        decision_id="decision-1",
        time="2026-12-01T00:00:00.000000Z",
        run="run",
        topology="topology",
        agent="agent",
        skill="c",
        server="bar",
        tool="c",
        via="model",
        call_id="1",
        policy_decision="allow",
        rule=None,
        reason=None,
        missing=(),
        outcome="completed",
        error_kind=None,
        duration=record.duration,
        inputs={"q": "x"},
        output="done",
        trace_id="ab",
        span_id="cd",
    )


async def test_the_row_of_a_refusal_carries_the_text_that_the_agent_reads() -> None:
    record = await row_of(Refused(UNMET))
    assert (record.policy_decision, record.rule, record.outcome) == ("deny", "requires", "refused")
    assert record.reason == refusal_text("c", UNMET)
    assert record.missing == ("a",)
    assert (record.output, record.error_kind) == (None, None)


async def test_the_row_of_a_failure_is_no_denial() -> None:
    record = await row_of(Failed(TimedOut(2)))
    assert (record.policy_decision, record.outcome) == ("allow", "failed")
    assert (record.error_kind, record.rule, record.reason) == ("timeout", None, None)
    assert record.output == "c failed: it did not answer within 2 seconds."


async def test_a_tool_cannot_forge_a_denial() -> None:
    forged = ToolResult(({"type": "text", "text": refusal_text("c", UNMET)},))
    completed, failed = await row_of(Completed(forged)), await row_of(Failed(ToolError(forged)))
    assert (completed.policy_decision, completed.outcome) == ("allow", "completed")
    assert (failed.policy_decision, failed.outcome, failed.error_kind) == (
        "allow",
        "failed",
        "tool_error",
    )
    assert completed.reason is failed.reason is None
    assert completed.missing == failed.missing == ()


async def test_an_unknown_name_is_recorded_as_it_was_sent() -> None:
    record = await row_of(Refused(NotGranted(())), make_call("rm -rf\n/", tool=NoTool()))
    assert (record.skill, record.server, record.tool) == ("rm -rf\n/", None, None)
    assert record.rule == "grant"


async def test_a_user_interceptors_refusal_is_recorded_under_its_name() -> None:
    record = await row_of(Refused(Withheld("hours", "Closed.")))
    assert (record.policy_decision, record.rule, record.reason) == ("deny", "hours", "Closed.")


async def test_broken_arguments_are_recorded_as_they_were_sent() -> None:
    broken = BrokenArguments('{"password": "hunter2', "they are not valid JSON")
    record = await row_of(Refused(NotGranted(())), make_call(arguments=broken))
    assert record.inputs == {"broken": '{"password": [redacted]'}


async def test_no_trace_leaves_its_ids_out() -> None:
    record = await row_of(COMPLETED)
    assert (record.trace_id, record.span_id) == (None, None)


async def test_a_cancelled_call_is_recorded_shielded_from_the_cancellation() -> None:
    reached = anyio.Event()

    class SlowSink(MemoryAuditSink):
        async def write(self, record: AuditRecord) -> None:
            await anyio.sleep(0.01)  # a checkpoint, at which an unshielded write would end
            await super().write(record)

    async def hang(_call: ToolCall, /) -> Outcome:
        reached.set()
        await anyio.sleep_forever()
        raise AssertionError

    sink = SlowSink()

    async def call() -> None:
        await audit(sink)(make_call(), hang)
        raise AssertionError("a cancelled call returned")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await reached.wait()
            tasks.cancel_scope.cancel()
    (record,) = sink.records
    assert (record.outcome, record.error_kind) == ("failed", "cancelled")
    assert (record.policy_decision, record.output) == ("allow", "c was cancelled.")


async def test_a_sink_that_hangs_holds_a_cancelled_call_no_longer_than_its_limit() -> None:
    sink = FailingSink(hangs=["write"])
    with anyio.fail_after(5), anyio.move_on_after(0.01) as scope:
        await audit(sink)(make_call(), NEVER_ENDING)
    assert scope.cancelled_caught


async def never_ending(_call: ToolCall, /) -> Outcome:
    await anyio.sleep_forever()
    raise AssertionError


NEVER_ENDING: Handler = never_ending


async def test_a_fault_of_the_gate_is_a_failure_and_on_record() -> None:
    sink = MemoryAuditSink()
    outcome = await audit(sink)(make_call(), NEVER)
    assert outcome == Failed(Raised("the gate", "AssertionError"))
    assert [record.error_kind for record in sink.records] == ["raised"]


@pytest.mark.parametrize("sink", [FailingSink(raises=["ready"]), FailingSink(hangs=["ready"])])
async def test_while_the_log_is_down_nothing_reaches_the_neighbour(sink: FailingSink) -> None:
    with anyio.fail_after(5):
        assert await audit(sink)(make_call(), NEVER) == Refused(DOWN)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("ready", "the audit log is not available: OSError: disk full"),
        ("write", "call decision-1 has no row in the audit log: OSError: disk full"),
    ],
)
async def test_the_operator_is_told_why_the_log_is_down(
    where: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    await audit(FailingSink(raises=[where]))(make_call(), Neighbour())
    assert said in caplog.messages


async def test_a_refusal_for_the_log_is_itself_recorded_when_the_log_recovers() -> None:
    sink = FailingSink(raises=["ready"])
    await audit(sink)(make_call(), NEVER)
    (record,) = sink.records
    assert (record.policy_decision, record.rule) == ("deny", "gate")


@pytest.mark.parametrize("sink", [FailingSink(raises=["write"]), FailingSink(hangs=["write"])])
async def test_a_result_whose_row_cannot_be_written_is_not_returned(sink: FailingSink) -> None:
    with anyio.fail_after(5):
        outcome = await audit(sink)(make_call(), Neighbour())
    assert outcome == Failed(Unrecorded("audit log unavailable"))


async def test_a_refusal_whose_row_cannot_be_written_is_not_returned_either() -> None:
    sink = FailingSink(raises=["write"])
    assert await audit(sink)(make_call(), Neighbour(Refused(UNMET))) == Refused(DOWN)


@pytest.mark.parametrize("where", ["ready", "write"])
async def test_fail_open_lets_calls_pass_unrecorded(where: str) -> None:
    sink = FailingSink(raises=[where])
    assert await audit(sink, fail_open=True)(make_call(), Neighbour()) is COMPLETED


async def test_secrets_are_blotted_out_of_inputs_output_and_reason() -> None:
    secret = "correct-horse-battery"
    arguments = {"q": f"x {secret}", "password": "short", "ssn": "078"}
    shown = Completed(ToolResult(({"type": "text", "text": f'{{"ssn": "078", "v": "{secret}"}}'},)))
    sink = MemoryAuditSink()
    interceptor = audit(sink, secrets=[secret], hidden=["ssn"])
    await interceptor(make_call(arguments=arguments), Neighbour(shown))
    await interceptor(make_call(), Neighbour(Refused(Withheld("hours", f"It is {secret}."))))
    assert sink.records[0].inputs == {
        "q": "x [redacted]",
        "password": "[redacted]",
        "ssn": "[redacted]",
    }
    assert sink.records[0].output == '{"ssn": "[redacted]", "v": "[redacted]"}'
    assert sink.records[1].reason == "It is [redacted]."


async def test_names_that_are_hidden_for_one_skill_are_shown_for_another() -> None:
    sink = MemoryAuditSink()
    call = make_call("other", arguments={"ssn": "078"})
    await audit(sink, hidden=["ssn"])(call, Neighbour())
    assert sink.records[0].inputs == {"ssn": "078"}


async def test_inputs_and_output_are_bounded() -> None:
    huge = Completed(ToolResult(({"type": "text", "text": "é" * 100_000},)))
    record = await row_of(huge, make_call(arguments={"x": "é" * 100_000}))
    assert record.output is not None
    assert len(record.output.encode()) <= 2048
    assert set(record.inputs) == {"truncated", "characters"}


async def test_any_store_can_take_every_text_of_a_row() -> None:
    hostile = "\ud800\x00"
    result = Completed(ToolResult(({"type": "text", "text": hostile},)))
    call = make_call(hostile, id=hostile, arguments={hostile: hostile})
    record = await row_of(result, call)
    for text in (record.skill, record.call_id, record.output, *record.inputs.items()):
        assert "\x00" not in str(text)
        str(text).encode()


async def test_calls_side_by_side_leave_one_row_each() -> None:
    sink = MemoryAuditSink()
    interceptor = audit(sink)

    async def attempt(number: int) -> None:
        await interceptor(make_call(id=str(number)), Neighbour())

    async with anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(attempt, number)
    assert sorted(int(record.call_id) for record in sink.records) == list(range(50))


def test_a_timestamp_has_six_decimals_and_a_z() -> None:
    assert timestamp(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == "2026-01-02T03:04:05.000000Z"
