"""The event of a refusal: what it carries, and how it leaves."""

import time
from collections.abc import Callable, Mapping
from typing import TypeAlias

from opentelemetry._logs import Logger, SeverityNumber  # private in name; the only logs API
from opentelemetry.trace import Span, set_span_in_context
from opentelemetry.util.types import AttributeValue

from interceptors import (
    Redactor,
    Refusal,
    SkillState,
    Standing,
    ToolCall,
    UnmetPrerequisites,
    printable,
    refusal_text,
    rule_name,
)
from telemetry import conventions
from telemetry.bounds import bounded, bounded_list

EventForm: TypeAlias = Callable[[Span, str, Mapping[str, AttributeValue]], None]
"""Emits an event, by name and attributes, on a span that is recording."""


def as_span_event(span: Span, name: str, attributes: Mapping[str, AttributeValue]) -> None:
    """Emit an event as a span event, the form that trace back ends show."""
    span.add_event(name, attributes)


def as_log_event(logger: Logger) -> EventForm:
    """Return the form in which events are log records of `logger`, in the context of their span."""

    def emit(span: Span, name: str, attributes: Mapping[str, AttributeValue]) -> None:
        logger.emit(
            timestamp=time.time_ns(),
            event_name=name,
            severity_number=SeverityNumber.INFO,
            attributes=dict(attributes),
            context=set_span_in_context(span),
        )

    return emit


def record_refusal(
    span: Span,
    call: ToolCall,
    refusal: Refusal,
    redactor: Redactor,
    form: EventForm = as_span_event,
) -> None:
    """Record on the span of an attempt that the gate refused it.

    The status stays unset: a refusal is the gate working, and `error` must find failures only. The
    reason is that of the audit row: the text that the agent reads, without known secrets.
    """
    rule = bounded(rule_name(refusal))
    span.set_attribute(conventions.POLICY_DECISION, conventions.DENY)
    span.set_attribute(conventions.RULE, rule)
    attributes: dict[str, AttributeValue] = {
        conventions.POLICY_DECISION: conventions.DENY,
        conventions.RULE: rule,
        conventions.REASON: bounded(redactor.plain(refusal_text(call.skill, refusal))),
        conventions.DECISION_ID: call.decision,
        conventions.TOOL_NAME: printable(redactor.plain(call.skill)),
        conventions.AGENT: call.scope.agent,
        conventions.COMPLETED: bounded_list(_completed(call)),
    }
    if isinstance(refusal, UnmetPrerequisites):
        missing = bounded_list([missing.skill for missing in refusal.missing])
        span.set_attribute(conventions.MISSING, missing)
        attributes[conventions.MISSING] = missing
        # One layer an item: an attribute cannot hold a list of lists.
        attributes[conventions.REMEDY] = bounded_list(
            [", ".join(layer) for layer in refusal.remedy]
        )
    form(span, conventions.REFUSAL_EVENT, attributes)


def _completed(call: ToolCall) -> list[str]:
    """Return what the agent had done when it issued the call, as far as its standing tells."""
    if not isinstance(call.standing, Standing):
        return []
    states = call.standing.states
    return [skill for skill, state in states.items() if state is SkillState.COMPLETED]
