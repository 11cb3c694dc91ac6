"""Sampling decides what is exported, and nothing else: the gate, its log and its metrics go on."""

from pathlib import Path
from typing import Any

import pytest
from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased, Sampler
from opentelemetry.trace import format_trace_id

from interceptors import AuditRecord, Completed, MemoryAuditSink, Outcome, Redactor, ToolResult
from seriatim.runtime.run import Observers
from telemetry import Telemetry, TracingInterceptor, caller_context, current_trace
from tests.support.executors import EXECUTORS, Reply, gate_workspace, opened

pytestmark = pytest.mark.anyio

RULES = {"get": ["list"]}
TURNS = [
    [("get", {"name": "card"})],
    [("list", {})],
    [("get", {"name": "card"}), ("fail", {}), ("drop-all", {})],
]


class Sampled:
    """Telemetry under a sampler, with what it exported."""

    def __init__(self, sampler: Sampler, meter_provider: Any) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(sampler, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.telemetry = Telemetry(
            provider, meter_provider, traces=True, metrics=True, capture=True, close=lambda: None
        )


def told(row: AuditRecord) -> tuple[object, ...]:
    """Return what a row tells apart from ids and times."""
    return (row.skill, row.policy_decision, row.rule, row.reason, row.missing, row.outcome)


@pytest.mark.parametrize("drive", EXECUTORS.values(), ids=EXECUTORS.keys())
async def test_with_every_span_dropped_calls_rows_and_metrics_are_the_same(
    tmp_path: Path, drive: Any, metering: Any
) -> None:
    async def play(sampled: Sampled, run_id: str) -> tuple[list[Reply], list[AuditRecord]]:
        audit, replies = MemoryAuditSink(), []
        file = gate_workspace(tmp_path, RULES)
        observers = Observers(sampled.telemetry)
        async with (
            opened(file, audit, run=run_id, observers=observers) as run,
            drive(run, "builder") as agent,
        ):
            for turn in TURNS:
                replies += await agent.turn(*turn)
        return replies, audit.records

    def decisions() -> dict[tuple[tuple[str, str], ...], int]:
        points = metering.points("seriatim.decisions") + metering.points("seriatim.recoveries")
        return {tuple(sorted(attributes.items())): value for attributes, value in points}

    shown, dropped = (Sampled(s, metering.provider) for s in (ALWAYS_ON, ALWAYS_OFF))
    replies, rows = await play(shown, "shown")
    counted = decisions()
    replies_unseen, rows_unseen = await play(dropped, "dropped")

    assert replies_unseen == replies
    assert sorted(map(told, rows_unseen), key=str) == sorted(map(told, rows), key=str)
    assert counted
    assert decisions() == {attributes: 2 * value for attributes, value in counted.items()}
    assert shown.exporter.get_finished_spans()
    assert not dropped.exporter.get_finished_spans()
    # The ids still tell which rows belong together.
    assert len({row.trace_id for row in rows_unseen}) == 1
    assert len({row.span_id for row in rows_unseen}) == len(rows_unseen) == 5


async def test_a_row_bears_the_trace_of_a_caller_that_is_not_sampled(
    make_call: Any,
) -> None:
    provider = TracerProvider(ParentBased(ALWAYS_ON), shutdown_on_exit=False)
    interceptor = TracingInterceptor(Redactor(), tracer_provider=provider)
    caller = "0af7651916cd43dd8448eb211c80319c"
    sent = {"traceparent": f"00-{caller}-b7ad6b7169203331-00"}
    seen = []

    async def proceed(_call: object, /) -> Outcome:
        assert not trace.get_current_span().is_recording()
        seen.extend(current_trace())
        return Completed(ToolResult())

    token = context.attach(caller_context(sent, Context()))
    try:
        await interceptor(make_call(), proceed)
        here = trace.get_current_span().get_span_context()
    finally:
        context.detach(token)
    [ids] = seen
    assert ids.trace == caller == format_trace_id(here.trace_id)
    assert ids.span not in ("b7ad6b7169203331", "0" * 16)
