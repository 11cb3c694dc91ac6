"""The command's one switch: telemetry as the environment asks for it, or none at all."""

import sys
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Final, Self, assert_never, final

from opentelemetry import _logs, metrics, trace  # `_logs`: private in name; the only logs API
from opentelemetry.metrics import MeterProvider, NoOpMeterProvider
from opentelemetry.trace import NoOpTracerProvider, ProxyTracerProvider, TracerProvider

from telemetry import conventions
from telemetry.refusals import EventForm, as_log_event, as_span_event
from telemetry.settings import EventKind, read_settings


@final
class Telemetry:
    """Where spans and metrics go while the command runs; leaving the context delivers the rest.

    Leave it when no event loop runs: it blocks for up to two seconds when the backend is down.

    Attributes:
        traces: whether spans, or log events of them, are exported; without them tracing is not
            composed.
        metrics: whether metrics are exported; without them metrics are not composed.
        capture: whether spans may show arguments and results.
        event_form: how the event of a refusal leaves.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider,
        meter_provider: MeterProvider,
        *,
        traces: bool,
        metrics: bool,
        capture: bool,
        close: Callable[[], None],
        event_form: EventForm = as_span_event,
    ) -> None:
        self.tracer_provider: Final = tracer_provider
        self.meter_provider: Final = meter_provider
        self.traces: Final = traces
        self.metrics: Final = metrics
        self.capture: Final = capture
        self.event_form: Final = event_form
        self._close: Final = close

    @property
    def enabled(self) -> bool:
        """Whether anything is exported."""
        return self.traces or self.metrics

    def close(self) -> None:
        """Deliver what is left, within two seconds; a second call does nothing."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()


def say_on_stderr(line: str) -> None:
    """Write one line to stderr."""
    sys.stderr.write(f"{line}\n")


def start_telemetry(
    environ: Mapping[str, str],
    otlp_endpoint: str = "",
    *,
    say: Callable[[str], None] = say_on_stderr,
) -> Telemetry:
    """Start what the `OTEL_*` variables and the flag ask for, for the whole process.

    For the command only: it sets the global providers. Where somebody has set them already
    (`opentelemetry-instrument`), theirs are used and stay theirs to close.

    Args:
        environ: the environment of the process; the SDK reads its own variables there by itself.
        otlp_endpoint: the base URL given by `--otlp`; `""` without the flag.
        say: receives the one line that tells what could not be delivered.

    Raises:
        TelemetrySettingError: when a setting cannot be followed.
    """
    settings = read_settings(environ, otlp_endpoint)
    if not isinstance(trace.get_tracer_provider(), ProxyTracerProvider):
        return Telemetry(
            trace.get_tracer_provider(),
            metrics.get_meter_provider(),
            traces=True,
            metrics=True,
            capture=settings.capture,
            close=_nothing,
            event_form=_form(settings.refusals),
        )
    if not settings.wanted:
        return no_telemetry()
    # Here and not at the top: the SDK and its exporters take 120 ms to import.
    from telemetry.setup import install, start  # noqa: PLC0415  see above

    telemetry = start(settings, say)
    install(telemetry)
    return telemetry


def no_telemetry() -> Telemetry:
    """Return telemetry that is off."""
    return Telemetry(
        NoOpTracerProvider(),
        NoOpMeterProvider(),
        traces=False,
        metrics=False,
        capture=False,
        close=_nothing,
    )


def _form(kind: EventKind) -> EventForm:
    """Return the form of events that leave by the global providers."""
    match kind:
        case EventKind.SPAN:
            return as_span_event
        case EventKind.LOG:
            return as_log_event(_logs.get_logger(conventions.SCOPE))
        case _:
            assert_never(kind)


def _nothing() -> None:
    """Close what was never opened."""
