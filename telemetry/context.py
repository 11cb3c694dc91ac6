"""Where a span stands: the caller's context, and the ids of the current span."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import context, trace
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from interceptors import TraceIds

_KEYS = ("traceparent", "tracestate", "baggage")


def current_trace() -> tuple[TraceIds, ...]:
    """Return the ids of the current span in a tuple of one, or nothing when there is no span."""
    here = trace.get_current_span().get_span_context()
    if not here.is_valid:
        return ()
    return (TraceIds(trace.format_trace_id(here.trace_id), trace.format_span_id(here.span_id)),)


def caller_context(carrier: Mapping[str, object], fallback: Context) -> Context:
    """Return the context that a caller sent along, or `fallback` when it sent none that is valid.

    Always W3C trace context and baggage, whatever `OTEL_PROPAGATORS` says: MCP fixes the keys
    (SEP-414).

    Args:
        carrier: the `_meta` of an MCP request, or the headers of an HTTP request.
        fallback: keeps its place beneath the caller's context; also what stands for it.
    """
    sent = {key: value for key in _KEYS if isinstance(value := carrier.get(key), str)}
    parented = TraceContextTextMapPropagator().extract(sent, context=fallback)
    return W3CBaggagePropagator().extract(sent, context=parented)


@contextmanager
def no_trace_of_its_own() -> Iterator[None]:
    """Keep what runs in this context from beginning traces; within a trace, change nothing.

    For what libraries trace of their own accord, and nobody would look for. It stands under a span
    that is not sampled, which samplers heed unless they are told to take everything.
    """
    if trace.get_current_span().get_span_context().is_valid:
        yield
        return
    unsampled = SpanContext(1, 1, is_remote=False, trace_flags=TraceFlags(TraceFlags.DEFAULT))
    token = context.attach(trace.set_span_in_context(NonRecordingSpan(unsampled)))
    try:
        yield
    finally:
        context.detach(token)
