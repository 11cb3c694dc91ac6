"""Tracing: one span for each attempt to use a skill, refused ones included."""

import json
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final, assert_never

from opentelemetry import context, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider
from opentelemetry.util.types import AttributeValue

from interceptors import (
    BrokenArguments,
    Cancelled,
    Completed,
    Failed,
    Failure,
    Handler,
    Outcome,
    Raised,
    Redactor,
    Refused,
    SkillId,
    ToolCall,
    ToolError,
    ToolRef,
    error_kind,
    failure_text,
    printable,
    text_of,
)
from telemetry import conventions
from telemetry.bounds import bounded
from telemetry.refusals import EventForm, as_span_event, record_refusal

CANCELLED: Final = Failed(Cancelled())


class TracingInterceptor:
    """Opens the span of the attempt and records the outcome on it. Outermost of the chain.

    Args:
        redactor: blots secrets out of whatever text of others is shown.
        hidden: per skill, further names whose values are not shown.
        capture: show arguments and results, redacted and bounded.
        event_form: how the event of a refusal leaves.
        tracer_provider: the global one unless given.
    """

    def __init__(
        self,
        redactor: Redactor,
        *,
        hidden: Mapping[SkillId, Collection[str]] = MappingProxyType({}),
        capture: bool = False,
        event_form: EventForm = as_span_event,
        tracer_provider: TracerProvider | None = None,
    ) -> None:
        self._redactor: Final = redactor
        self._hidden: Final = hidden
        self._capture: Final = capture
        self._event_form: Final = event_form
        self._names: Final[dict[SkillId, str]] = {}
        self._tracer: Final = trace.get_tracer(conventions.SCOPE, tracer_provider=tracer_provider)

    # By hand: `start_as_current_span` costs 3.6 µs more a call, and leaves the status of a
    # cancelled call unset.
    async def __call__(self, call: ToolCall, proceed: Handler, /) -> Outcome:
        name = self._names.get(call.skill) or self._name(call)
        span = self._tracer.start_span(
            f"{conventions.EXECUTE_TOOL} {name}",
            kind=SpanKind.INTERNAL,
            attributes=span_attributes(call, name),
        )
        token = context.attach(trace.set_span_in_context(span))
        outcome: Outcome = CANCELLED
        try:
            outcome = await proceed(call)
        except Exception as error:
            outcome = Failed(Raised("chain", type(error).__name__))
            raise
        finally:
            context.detach(token)
            if span.is_recording():
                self._record(span, call, outcome)
            span.end()
        return outcome

    def _name(self, call: ToolCall) -> str:
        """Return the name of the skill, fit to be shown; keep it if granted: those are few."""
        name = printable(self._redactor.plain(call.skill))
        if isinstance(call.tool, ToolRef):
            self._names[call.skill] = name
        return name

    def _record(self, span: Span, call: ToolCall, outcome: Outcome) -> None:
        if self._capture:
            self._show(span, call, outcome)
        match outcome:
            case Completed():
                span.set_attribute(conventions.POLICY_DECISION, conventions.ALLOW)
            case Refused(refusal):
                record_refusal(span, call, refusal, self._redactor, self._event_form)
            case Failed(failure):
                span.set_attribute(conventions.POLICY_DECISION, conventions.ALLOW)
                span.set_attribute(conventions.ERROR_TYPE, error_kind(failure))
                span.set_status(Status(StatusCode.ERROR, self._describe(call, failure)))
            case _:
                assert_never(outcome)

    def _describe(self, call: ToolCall, failure: Failure) -> str:
        # What a tool wrote is a result, and results are shown only on request.
        if isinstance(failure, ToolError):
            return f"{printable(call.skill)} flagged its result as an error"
        hidden = self._hidden.get(call.skill, ())
        return bounded(self._redactor.preview(failure_text(printable(call.skill), failure), hidden))

    def _show(self, span: Span, call: ToolCall, outcome: Outcome) -> None:
        hidden = self._hidden.get(call.skill, ())
        match call.arguments:
            case BrokenArguments(text, _):
                arguments = self._redactor.preview(text, hidden)
            case given:
                shown = dict(self._redactor.inputs(given, hidden))
                arguments = json.dumps(shown, ensure_ascii=False, default=str)
        span.set_attribute(conventions.TOOL_ARGUMENTS, bounded(arguments))
        if not isinstance(outcome, Refused):
            text = self._redactor.preview(text_of(call.skill, outcome), hidden)
            span.set_attribute(conventions.TOOL_RESULT, bounded(text))


def span_attributes(call: ToolCall, name: str) -> dict[str, AttributeValue]:
    """Return what is known of an attempt before it is judged.

    Args:
        name: the skill's name, printable and bounded.
    """
    attributes: dict[str, AttributeValue] = {
        conventions.OPERATION: conventions.EXECUTE_TOOL,
        conventions.TOOL_NAME: name,
        conventions.TOOL_TYPE: conventions.EXTENSION,
        conventions.TOOL_CALL_ID: bounded(call.id),
        conventions.AGENT: call.scope.agent,
        conventions.CONVERSATION: call.scope.run,
        conventions.RUN: call.scope.run,
        conventions.DECISION_ID: call.decision,
        conventions.VIA: call.via.value,
    }
    if isinstance(call.tool, ToolRef):
        attributes[conventions.SERVER] = call.tool.server
        attributes[conventions.TOOL] = call.tool.name
    return attributes
