"""What libraries trace of their own accord, within a trace and beside every trace."""

from typing import Any

from opentelemetry import trace

from telemetry.context import no_trace_of_its_own


def test_beside_every_trace_nothing_is_recorded(tracing: Any) -> None:
    tracer = tracing.provider.get_tracer("a library")
    with (
        no_trace_of_its_own(),
        tracer.start_as_current_span("greeting"),
        tracer.start_as_current_span("question"),
    ):
        pass
    assert not tracing.spans
    assert not trace.get_current_span().get_span_context().is_valid


def test_within_a_trace_nothing_changes(tracing: Any) -> None:
    tracer = tracing.provider.get_tracer("a library")
    with (
        tracer.start_as_current_span("run"),
        no_trace_of_its_own(),
        tracer.start_as_current_span("greeting"),
    ):
        pass
    greeting, run = tracing.spans
    assert greeting.parent.span_id == run.context.span_id
