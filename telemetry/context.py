"""Where a span stands: the caller's context, and the ids of the current span."""

from collections.abc import Mapping

from opentelemetry import trace
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
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
