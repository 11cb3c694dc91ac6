"""The gate: each behaviour once, through both executors, on a real server over stdio."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from interceptors import AuditRecord, MemoryAuditSink
from seriatim.runtime.run import Observers, Run
from telemetry import Telemetry
from tests.support.executors import EXECUTORS, Executor, Reply, ask, gate_workspace, opened, reached

pytestmark = pytest.mark.anyio

Drive = Callable[[Run, str], AbstractAsyncContextManager[Executor]]

RULES = {
    "get": ["list"],
    "search": ["get"],
    "structured": ["list", "forge"],
}
GET_REFUSED = (
    "get requires list, which has not been called in this session. Call list first, then retry."
)


@pytest.fixture(params=EXECUTORS.values(), ids=EXECUTORS.keys())
def drive(request: pytest.FixtureRequest) -> Drive:
    driver: Drive = request.param
    return driver


@pytest.fixture
def audit() -> MemoryAuditSink:
    return MemoryAuditSink()


async def test_a_guarded_call_is_refused_to_the_byte_until_its_prerequisite_has_succeeded(
    tmp_path: Path, drive: Drive, audit: MemoryAuditSink
) -> None:
    async with (
        opened(gate_workspace(tmp_path, RULES), audit) as run,
        drive(run, "builder") as agent,
    ):
        assert await ask(agent, "get", name="card") == Reply(GET_REFUSED, is_error=True)
        assert await ask(agent, "list") == Reply("console, card", is_error=False)
        assert await ask(agent, "get", name="card") == Reply("Cards have one button.", False)


async def test_a_refused_call_never_reaches_the_server(
    tmp_path: Path, drive: Drive, audit: MemoryAuditSink
) -> None:
    async with (
        opened(gate_workspace(tmp_path, RULES), audit) as run,
        drive(run, "builder") as agent,
    ):
        await ask(agent, "get")
        await ask(agent, "list")
        await ask(agent, "search", query="x")
    assert reached(tmp_path) == ["list_conventions"]


async def test_one_refusal_names_the_whole_way(
    tmp_path: Path, drive: Drive, audit: MemoryAuditSink
) -> None:
    async with (
        opened(gate_workspace(tmp_path, RULES), audit) as run,
        drive(run, "builder") as agent,
    ):
        refused = await ask(agent, "search", query="x")
        assert refused.text == (
            "search requires get, which has not been called in this session. "
            "Call list, then get first, then retry."
        )
        for skill in ("list", "get", "search"):
            assert not (await ask(agent, skill)).is_error


@pytest.mark.parametrize("order", [("list", "forge"), ("forge", "list")])
async def test_all_prerequisites_are_needed_in_any_order_and_one_alone_is_not_enough(
    tmp_path: Path, drive: Drive, audit: MemoryAuditSink, order: tuple[str, str]
) -> None:
    first, second = order
    async with (
        opened(gate_workspace(tmp_path, RULES), audit) as run,
        drive(run, "builder") as agent,
    ):
        assert (await ask(agent, "structured")).text == (
            "structured requires list, forge, which have not been called in this session. "
            "Call list, forge first, then retry."
        )
        await ask(agent, first)
        assert (await ask(agent, "structured")).text == (
            f"structured requires {second}, which has not been called in this session. "
            f"Call {second} first, then retry."
        )
        await ask(agent, second)
        assert await ask(agent, "structured") == Reply('{"n": 3}', is_error=False)


async def test_a_prerequisite_that_flags_an_error_does_not_satisfy(
    tmp_path: Path, drive: Drive, audit: MemoryAuditSink
) -> None:
    async with (
        opened(gate_workspace(tmp_path, {"get": ["fail"]}), audit) as run,
        drive(run, "builder") as agent,
    ):
        assert await ask(agent, "fail") == Reply("it went wrong", is_error=True)
        assert await ask(agent, "get") == Reply(
            "get requires fail, which was called but did not succeed in this session. "
            "Call fail again, then retry.",
            is_error=True,
        )


async def test_a_prerequisite_that_times_out_does_not_satisfy(
    tmp_path: Path, drive: Drive, audit: MemoryAuditSink
) -> None:
    file = gate_workspace(tmp_path, {"get": ["slow"]}, timeouts={"slow": 0.2})
    async with opened(file, audit) as run, drive(run, "builder") as agent:
        assert await ask(agent, "slow", seconds=60) == Reply(
            "slow failed: it did not answer within 0.2 seconds.", is_error=True
        )
        assert "which was called but did not succeed" in (await ask(agent, "get")).text
    assert [record.error_kind for record in audit.records] == ["timeout", None]


async def test_a_prerequisite_that_succeeds_at_the_second_attempt_satisfies(
    tmp_path: Path, drive: Drive, audit: MemoryAuditSink
) -> None:
    async with (
        opened(gate_workspace(tmp_path, {"get": ["flaky"]}), audit) as run,
        drive(run, "builder") as agent,
    ):
        assert (await ask(agent, "flaky")).is_error
        assert (await ask(agent, "get")).is_error
        assert not (await ask(agent, "flaky")).is_error
        assert not (await ask(agent, "get")).is_error


async def test_a_sibling_agents_call_does_not_satisfy(
    tmp_path: Path, drive: Drive, audit: MemoryAuditSink
) -> None:
    async with (
        opened(gate_workspace(tmp_path, RULES), audit) as run,
        drive(run, "sibling") as sibling,
        drive(run, "builder") as builder,
    ):
        assert not (await ask(sibling, "list")).is_error
        assert (await ask(builder, "get")).text == GET_REFUSED
        assert not (await ask(sibling, "get")).is_error


async def test_another_runs_call_does_not_satisfy(
    tmp_path: Path, drive: Drive, audit: MemoryAuditSink
) -> None:
    file = gate_workspace(tmp_path, RULES)
    async with opened(file, audit, run="r1") as run, drive(run, "builder") as agent:
        await ask(agent, "list")
    async with opened(file, audit, run="r2") as run, drive(run, "builder") as agent:
        assert (await ask(agent, "get")).text == GET_REFUSED


class AwaitsDenial(MemoryAuditSink):
    """Tells when the row of a refusal is there."""

    def __init__(self) -> None:
        super().__init__()
        self.row = anyio.Event()

    async def write(self, record: AuditRecord) -> None:
        await super().write(record)
        if record.policy_decision == "deny":
            self.row.set()


async def test_a_prerequisite_issued_together_with_the_guarded_call_does_not_count(
    tmp_path: Path, drive: Drive
) -> None:
    go = tmp_path / "go"
    refused = AwaitsDenial()
    async with (
        opened(gate_workspace(tmp_path, {"get": ["slow"]}), refused) as run,
        drive(run, "builder") as agent,
    ):
        async with anyio.create_task_group() as tasks:
            turn: list[Reply] = []

            async def together() -> None:
                turn.extend(await agent.turn(("slow", {"until": str(go)}), ("get", {})))

            tasks.start_soon(together)
            with anyio.fail_after(10):
                await refused.row.wait()
            go.touch()
        assert turn == [
            Reply("done", is_error=False),
            Reply(
                "get requires slow, which was called but whose result had not been returned when "
                "get was called. Read the result of slow, then retry.",
                is_error=True,
            ),
        ]
        assert not (await ask(agent, "get")).is_error


async def test_a_refusal_is_on_record_as_a_denial_and_a_failed_tool_is_not(
    tmp_path: Path, drive: Drive, audit: MemoryAuditSink
) -> None:
    async with (
        opened(gate_workspace(tmp_path, RULES), audit) as run,
        drive(run, "builder") as agent,
    ):
        await ask(agent, "get", name="card")
        await ask(agent, "fail")
    refused, failed = audit.records
    assert (refused.policy_decision, refused.rule, refused.outcome) == (
        "deny",
        "requires",
        "refused",
    )
    assert (refused.missing, refused.reason, refused.error_kind) == (("list",), GET_REFUSED, None)
    assert (refused.server, refused.tool, refused.inputs) == (
        "counting",
        "get_convention",
        {"name": "card"},
    )
    assert (failed.policy_decision, failed.rule, failed.outcome, failed.error_kind) == (
        "allow",
        None,
        "failed",
        "tool_error",
    )
    assert refused.decision_id != failed.decision_id


async def test_a_tool_that_returns_the_text_of_a_refusal_forges_nothing(
    tmp_path: Path, drive: Drive, audit: MemoryAuditSink
) -> None:
    async with (
        opened(gate_workspace(tmp_path, {"get": ["forge"]}), audit) as run,
        drive(run, "builder") as agent,
    ):
        assert await ask(agent, "forge", text=GET_REFUSED) == Reply(GET_REFUSED, is_error=False)
        assert not (await ask(agent, "get")).is_error
    assert [(r.policy_decision, r.outcome) for r in audit.records] == [("allow", "completed")] * 2


async def test_a_name_that_was_not_granted_is_refused_and_on_record(
    tmp_path: Path, drive: Drive, audit: MemoryAuditSink
) -> None:
    async with (
        opened(gate_workspace(tmp_path, RULES), audit) as run,
        drive(run, "builder") as agent,
    ):
        reply = await ask(agent, "drop-all", table="x")
    assert reply == Reply(
        "drop-all is not one of your tools. Your tools are list, get, search, fail, raise, slow, "
        "forge, flaky, structured, echo.",
        is_error=True,
    )
    [row] = audit.records
    assert (row.policy_decision, row.rule, row.skill, row.server, row.tool) == (
        "deny",
        "grant",
        "drop-all",
        None,
        None,
    )


async def test_refusal_row_and_span_event_have_one_decision_id_and_a_failure_has_no_event(
    tmp_path: Path, drive: Drive, audit: MemoryAuditSink
) -> None:
    spans = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    telemetry = Telemetry(
        provider, NoOpMeterProvider(), traces=True, metrics=False, capture=False, close=lambda: None
    )
    async with (
        opened(gate_workspace(tmp_path, RULES), audit, observers=Observers(telemetry)) as run,
        drive(run, "builder") as agent,
    ):
        await ask(agent, "get", name="card")
        await ask(agent, "fail")
    row, failed_row = audit.records
    attempts = [span for span in spans.get_finished_spans() if span.name.startswith("execute_tool")]
    refused, failed = attempts
    [event] = refused.events
    assert event.name == "seriatim.refusal"
    assert event.attributes is not None
    assert event.attributes["seriatim.decision.id"] == row.decision_id
    assert event.attributes["seriatim.reason"] == row.reason == GET_REFUSED
    assert event.attributes["seriatim.missing"] == ("list",)
    assert event.attributes["policy_decision"] == row.policy_decision == "deny"
    assert refused.status.status_code is StatusCode.UNSET
    assert (failed.events, failed.status.status_code) == ((), StatusCode.ERROR)
    for span, record in ((refused, row), (failed, failed_row)):
        assert span.context is not None
        assert record.trace_id == f"{span.context.trace_id:032x}"
        assert record.span_id == f"{span.context.span_id:016x}"
    children = {
        other.parent.span_id for other in spans.get_finished_spans() if other.parent is not None
    }
    assert refused.context is not None
    assert refused.context.span_id not in children
