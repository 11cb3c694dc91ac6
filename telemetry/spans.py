"""The spans of a run that are not calls: agents, model requests, gateway registrations."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, Span, SpanKind, Status, StatusCode, TracerProvider
from opentelemetry.util.types import AttributeValue

from interceptors import DecisionId, Scope, ToolRef
from telemetry import conventions
from telemetry.bounds import bounded, bounded_list
from telemetry.refusals import EventForm


class RunSpans:
    """Opens the spans under which the calls of a run stand.

    Args:
        tracer_provider: the global one unless given.
        above: what registrations stand under; each begins a trace of its own unless given.
    """

    def __init__(
        self, tracer_provider: TracerProvider | None = None, above: Context | None = None
    ) -> None:
        self._provider: Final = tracer_provider
        self._tracer: Final = trace.get_tracer(conventions.SCOPE, tracer_provider=tracer_provider)
        self._above: Final = above or Context()

    def under_current(self) -> "RunSpans":
        """Return spans whose registrations stand under the span that is current here."""
        return RunSpans(self._provider, context.get_current())

    @contextmanager
    def agent(self, scope: Scope, topology: str) -> Iterator[Span]:
        """Make the span of an agent's work on one task current; a child's nests in its parent's."""
        with self._span(
            f"{conventions.INVOKE_AGENT} {scope.agent}",
            SpanKind.INTERNAL,
            {
                **_of(scope),
                conventions.OPERATION: conventions.INVOKE_AGENT,
                conventions.TOPOLOGY: topology,
            },
        ) as span:
            yield span

    @contextmanager
    def model_request(self, scope: Scope, provider: str, model: str) -> Iterator[Span]:
        """Make the span of one request to a model current; see `record_response`."""
        with self._span(
            f"{conventions.CHAT} {bounded(model)}",
            SpanKind.CLIENT,
            {
                **_of(scope),
                conventions.OPERATION: conventions.CHAT,
                conventions.PROVIDER: bounded(provider),
                conventions.REQUEST_MODEL: bounded(model),
            },
        ) as span:
            yield span

    @contextmanager
    def turn(self, request: Span) -> Iterator[None]:
        """Make a model request, whose span has ended, the parent of the calls that it led to."""
        if not request.get_span_context().is_valid:
            yield
            return
        parent = NonRecordingSpan(request.get_span_context())
        token = context.attach(trace.set_span_in_context(parent))
        try:
            yield
        finally:
            context.detach(token)

    def registration(self, scope: Scope) -> Context:
        """Return the context of a short span, ended already, that parents the scope's calls.

        Ended at once, because a registration may live for days and a span is seen when it ends.
        """
        span = self._tracer.start_span(
            conventions.REGISTRATION, context=self._above, attributes=_of(scope)
        )
        span.end()
        return trace.set_span_in_context(NonRecordingSpan(span.get_span_context()), Context())

    @contextmanager
    def tool_changed(
        self,
        scope: Scope,
        skill: str,
        tool: ToolRef,
        decision: DecisionId,
        change: str,
        *,
        form: EventForm,
    ) -> Iterator[None]:
        """Make a root span current that holds the event of a tool that changed.

        Args:
            change: what changed, as a clause about the tool.
        """
        attributes: dict[str, AttributeValue] = {
            **_of(scope),
            conventions.TOOL_NAME: skill,
            conventions.SERVER: tool.server,
            conventions.TOOL: tool.name,
            conventions.DECISION_ID: decision,
            conventions.CHANGE: bounded(change),
        }
        span = self._tracer.start_span(
            conventions.TOOL_CHANGED_EVENT, context=Context(), attributes=attributes
        )
        token = context.attach(trace.set_span_in_context(span))
        try:
            form(span, conventions.TOOL_CHANGED_EVENT, attributes)
            yield
        finally:
            context.detach(token)
            span.end()

    # By hand: `start_as_current_span` records an exception's message, which may hold a secret, and
    # leaves the status of a cancelled span unset.
    @contextmanager
    def _span(
        self, name: str, kind: SpanKind, attributes: dict[str, AttributeValue]
    ) -> Iterator[Span]:
        span = self._tracer.start_span(name, kind=kind, attributes=attributes)
        token = context.attach(trace.set_span_in_context(span))
        try:
            yield span
        except BaseException as error:
            kind_of_error = type(error).__name__ if isinstance(error, Exception) else "cancelled"
            span.set_attribute(conventions.ERROR_TYPE, kind_of_error)
            span.set_status(Status(StatusCode.ERROR, kind_of_error))
            raise
        finally:
            context.detach(token)
            span.end()


def record_response(
    span: Span,
    *,
    model: str,
    input_tokens: int,
    output_tokens: int,
    finish_reasons: Sequence[str] = (),
) -> None:
    """Record on the span of a model request what came back.

    Args:
        model: the model that answered, as the provider names it; `""` when it does not say.
        finish_reasons: why the model stopped; empty when the provider does not say.
    """
    span.set_attribute(conventions.INPUT_TOKENS, input_tokens)
    span.set_attribute(conventions.OUTPUT_TOKENS, output_tokens)
    if model:
        span.set_attribute(conventions.RESPONSE_MODEL, bounded(model))
    if finish_reasons:
        span.set_attribute(conventions.FINISH_REASONS, bounded_list(finish_reasons))


def _of(scope: Scope) -> dict[str, AttributeValue]:
    return {
        conventions.AGENT: scope.agent,
        conventions.CONVERSATION: scope.run,
        conventions.RUN: scope.run,
    }
