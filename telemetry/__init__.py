"""What is seen of a run in OpenTelemetry.

Library code: uses the API, and sets no global provider. Only `start_telemetry`, which is for the
command, does; and only `telemetry.setup`, which it imports when asked to, imports the SDK.
"""

from telemetry.bounds import KnownNames
from telemetry.context import caller_context, current_trace
from telemetry.metrics import (
    ExecutionTimer,
    ExecutionTimes,
    MetricsInterceptor,
    observe_audit_queue,
)
from telemetry.recoveries import Recoveries, RecoveryInterceptor
from telemetry.refusals import EventForm, as_span_event, record_refusal
from telemetry.settings import TelemetrySettingError
from telemetry.spans import RunSpans, record_response
from telemetry.switch import Telemetry, no_telemetry, start_telemetry
from telemetry.tracing import TracingInterceptor

__all__ = [
    "EventForm",
    "ExecutionTimer",
    "ExecutionTimes",
    "KnownNames",
    "MetricsInterceptor",
    "Recoveries",
    "RecoveryInterceptor",
    "RunSpans",
    "Telemetry",
    "TelemetrySettingError",
    "TracingInterceptor",
    "as_span_event",
    "caller_context",
    "current_trace",
    "no_telemetry",
    "observe_audit_queue",
    "record_refusal",
    "record_response",
    "start_telemetry",
]
