"""The OpenTelemetry SDK and its exporters: the only file that imports them."""

import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock, Thread
from typing import Final, TypeVar, assert_never, final

from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk._logs import (
    LoggerProvider,
    LogRecordProcessor,
    ReadableLogRecord,
    ReadWriteLogRecord,
)
from opentelemetry.sdk._logs.export import (
    BatchLogRecordProcessor,
    ConsoleLogRecordExporter,
    LogRecordExporter,
    LogRecordExportResult,
)
from opentelemetry.sdk.environment_variables import (
    OTEL_BLRP_MAX_QUEUE_SIZE,
    OTEL_BSP_MAX_QUEUE_SIZE,
)
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    ConsoleMetricExporter,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ConsoleSpanExporter,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.trace import NoOpTracerProvider

from interceptors import new_id
from telemetry import conventions
from telemetry.delivery import ItemDelivery, MetricDelivery, counted, undelivered
from telemetry.metrics import observe_dropped
from telemetry.refusals import as_log_event, as_span_event
from telemetry.settings import (
    Exporter,
    Protocol,
    Signal,
    SignalSettings,
    TelemetrySettingError,
    TelemetrySettings,
)
from telemetry.switch import Telemetry

EXIT_SECONDS: Final = 1.8
"""Seconds that the exit waits for delivery: within the two that are promised. The time-outs of the
exporters stay the user's: one short enough for the exit would lose what a slow backend accepts."""

QUEUE: Final = 2048
"""Spans, and log events, that wait for export unless a variable says otherwise (the SDK's own)."""

NOISY: Final = ("opentelemetry.exporter", "opentelemetry.sdk")
"""Loggers that repeat on stderr, for every batch, what is said once at the end."""


E = TypeVar("E", SpanExporter, MetricExporter, LogRecordExporter)


def start(settings: TelemetrySettings, say: Callable[[str], None]) -> Telemetry:
    """Return providers that export as `settings` ask; sets nothing global but the SDK's silence.

    Args:
        say: receives the line that tells what could not be delivered.

    Raises:
        TelemetrySettingError: when the SDK does not take the value of one of its variables, or OTLP
            over grpc is asked for and its package is not installed.
    """
    try:
        telemetry = _start(settings, say)
    except ValueError as error:
        raise TelemetrySettingError(
            f"the OpenTelemetry SDK does not take an `OTEL_*` variable: {error}",
            "correct the variable, or set `OTEL_SDK_DISABLED=true`",
        ) from error
    # After the set-up: what the SDK has to say about a variable that it cannot read is heard.
    _silence()
    return telemetry


def _start(settings: TelemetrySettings, say: Callable[[str], None]) -> Telemetry:
    resource = _resource()
    spans = ItemDelivery(_room(OTEL_BSP_MAX_QUEUE_SIZE))
    events = ItemDelivery(_room(OTEL_BLRP_MAX_QUEUE_SIZE))
    sums = MetricDelivery()
    span_exporters = _exporters(
        settings.traces,
        lambda otlp, endpoint: _CountedSpanExporter(otlp.spans(endpoint), spans),
        lambda: ConsoleSpanExporter(out=sys.stderr),
    )
    metric_exporters = _exporters(
        settings.metrics,
        lambda otlp, endpoint: _CountedMetricExporter(otlp.metrics(endpoint), sums),
        lambda: ConsoleMetricExporter(out=sys.stderr),
    )
    log_exporters = _exporters(
        settings.logs,
        lambda otlp, endpoint: _CountedLogExporter(otlp.logs(endpoint), events),
        lambda: ConsoleLogRecordExporter(out=sys.stderr),
    )

    tracer_provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    for span_exporter in span_exporters:
        tracer_provider.add_span_processor(_span_processor(span_exporter, spans))
    readers = [PeriodicExportingMetricReader(exporter) for exporter in metric_exporters]
    meter_provider = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
    observe_dropped(
        {Signal.TRACES.value: spans.lost, Signal.LOGS.value: events.lost}, meter_provider
    )
    logger_provider = LoggerProvider(resource, shutdown_on_exit=False)
    for log_exporter in log_exporters:
        logger_provider.add_log_record_processor(_log_processor(log_exporter, events))

    def tell() -> None:
        losses = [
            (counted(spans.missing(), "span"), settings.traces.host, spans.missing()),
            (counted(events.missing(), "log event"), settings.logs.host, events.missing()),
            ("the latest metrics", settings.metrics.host, sums.missing()),
        ]
        for line in undelivered((what, host) for what, host, lost in losses if lost):
            say(line)

    # A log event is of a span, and so needs one even where spans are not exported.
    traces = bool(span_exporters or log_exporters)
    return Telemetry(
        tracer_provider if traces else NoOpTracerProvider(),
        meter_provider if metric_exporters else NoOpMeterProvider(),
        traces=traces,
        metrics=bool(metric_exporters),
        capture=settings.capture,
        close=_Close(
            [tracer_provider.shutdown, meter_provider.shutdown, logger_provider.shutdown],
            [
                *(exporter.shutdown for exporter in span_exporters),
                *(exporter.shutdown for exporter in metric_exporters),
                *(exporter.shutdown for exporter in log_exporters),
            ],
            tell,
        ),
        event_form=as_log_event(logger_provider.get_logger(conventions.SCOPE))
        if log_exporters
        else as_span_event,
    )


def install(telemetry: Telemetry) -> None:
    """Make the providers global, so that libraries emit into them too."""
    if telemetry.traces:
        trace.set_tracer_provider(telemetry.tracer_provider)
    if telemetry.metrics:
        metrics.set_meter_provider(telemetry.meter_provider)


class _Close:
    """Shuts everything down side by side, once, and waits no longer than the exit may take.

    In daemon threads, because a shutdown of the SDK heeds no time limit: with a backend that does
    not answer it takes 7 to 30 seconds.
    """

    def __init__(
        self,
        closers: Sequence[Callable[[], None]],
        stoppers: Sequence[Callable[[], None]],
        tell: Callable[[], None],
    ) -> None:
        self._closers: Final = closers
        self._stoppers: Final = stoppers
        self._tell: Final = tell
        self._once: Final = Lock()

    def __call__(self) -> None:
        if not self._once.acquire(blocking=False):
            return
        end = time.monotonic() + EXIT_SECONDS
        threads = [Thread(target=closer, daemon=True) for closer in self._closers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        self._tell()
        if any(thread.is_alive() for thread in threads):
            for stop in self._stoppers:
                stop()


class _BoundedSpanProcessor(BatchSpanProcessor):
    """Batches the spans for which there is room."""

    def __init__(self, exporter: SpanExporter, delivery: ItemDelivery) -> None:
        super().__init__(exporter)
        self._delivery: Final = delivery

    def on_end(self, span: ReadableSpan) -> None:
        if span.context.trace_flags.sampled and self._delivery.admit():
            super().on_end(span)


def _span_processor(exporter: SpanExporter, delivery: ItemDelivery) -> SpanProcessor:
    if isinstance(exporter, _CountedSpanExporter):
        return _BoundedSpanProcessor(exporter, delivery)
    return BatchSpanProcessor(exporter)


class _BoundedLogProcessor(BatchLogRecordProcessor):
    """Batches the log events for which there is room."""

    def __init__(self, exporter: LogRecordExporter, delivery: ItemDelivery) -> None:
        super().__init__(exporter)
        self._delivery: Final = delivery

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        if self._delivery.admit():
            super().on_emit(log_record)


def _log_processor(exporter: LogRecordExporter, delivery: ItemDelivery) -> LogRecordProcessor:
    if isinstance(exporter, _CountedLogExporter):
        return _BoundedLogProcessor(exporter, delivery)
    return BatchLogRecordProcessor(exporter)


class _CountedSpanExporter(SpanExporter):
    """Counts what an exporter delivers."""

    def __init__(self, exporter: SpanExporter, delivery: ItemDelivery) -> None:
        self._exporter: Final = exporter
        self._delivery: Final = delivery

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._delivery.sent(len(spans))
        result = SpanExportResult.FAILURE
        try:
            result = self._exporter.export(spans)
        finally:
            self._delivery.settled(len(spans), arrived=result is SpanExportResult.SUCCESS)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


class _CountedLogExporter(LogRecordExporter):
    """Counts what an exporter delivers."""

    def __init__(self, exporter: LogRecordExporter, delivery: ItemDelivery) -> None:
        self._exporter: Final = exporter
        self._delivery: Final = delivery

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        self._delivery.sent(len(batch))
        result = LogRecordExportResult.FAILURE
        try:
            result = self._exporter.export(batch)
        finally:
            arrived = result is LogRecordExportResult.SUCCESS
            self._delivery.settled(len(batch), arrived=arrived)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]  # the SDK left it untyped

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


class _CountedMetricExporter(MetricExporter):
    """Notes whether an exporter delivers."""

    def __init__(self, exporter: MetricExporter, delivery: MetricDelivery) -> None:
        # Underscored, and yet what every reader takes from its exporter; there is no other way.
        super().__init__(exporter._preferred_temporality, exporter._preferred_aggregation)
        self._exporter: Final = exporter
        self._delivery: Final = delivery

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **options: object
    ) -> MetricExportResult:
        self._delivery.sent()
        result = MetricExportResult.FAILURE
        try:
            result = self._exporter.export(metrics_data, timeout_millis, **options)
        finally:
            self._delivery.settled(arrived=result is MetricExportResult.SUCCESS)
        return result

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return self._exporter.force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **options: object) -> None:
        self._exporter.shutdown(timeout_millis, **options)


@final
@dataclass(frozen=True, slots=True)
class _Otlp:
    """The exporters of one protocol: each takes an endpoint, or `None` for that of the variables.

    Attributes:
        path: what the endpoint of a signal has after the base URL; `{}` is the signal's word.
    """

    spans: Callable[[str | None], SpanExporter]
    metrics: Callable[[str | None], MetricExporter]
    logs: Callable[[str | None], LogRecordExporter]
    path: str


def _otlp(protocol: Protocol) -> _Otlp:
    match protocol:
        case Protocol.HTTP:
            return _Otlp(OTLPSpanExporter, OTLPMetricExporter, OTLPLogExporter, "/v1/{}")
        case Protocol.GRPC:
            return _grpc()
        case _:
            assert_never(protocol)


def _grpc() -> _Otlp:
    try:
        # Here and not at the top: the package comes with an extra.
        from opentelemetry.exporter.otlp.proto.grpc import (  # noqa: PLC0415  see above
            _log_exporter,
            metric_exporter,
            trace_exporter,
        )
    except ImportError as error:
        raise TelemetrySettingError(
            "OTLP over grpc needs a package that is not installed",
            "`pip install 'seriatim[otlp-grpc]'`, or set "
            "`OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf`",
        ) from error
    return _Otlp(
        trace_exporter.OTLPSpanExporter,
        metric_exporter.OTLPMetricExporter,
        _log_exporter.OTLPLogExporter,
        "",
    )


def _exporters(
    asked: SignalSettings,
    to_backend: Callable[[_Otlp, str | None], E],
    to_console: Callable[[], E],
) -> list[E]:
    """Return the exporters that are asked of one signal."""
    made: list[E] = []
    for exporter in asked.exporters:
        match exporter:
            case Exporter.OTLP:
                otlp = _otlp(asked.protocol)
                path = otlp.path.format(asked.signal.value)
                made.append(to_backend(otlp, f"{asked.endpoint}{path}" if asked.endpoint else None))
            case Exporter.CONSOLE:
                made.append(to_console())
            case _:
                assert_never(exporter)
    return made


def _resource() -> Resource:
    """Return the resource that the variables describe, with a name and an instance of its own.

    The instance keeps the sums of two processes apart.
    """
    described = Resource.create()
    named = str(described.attributes.get(SERVICE_NAME, ""))
    own = {SERVICE_INSTANCE_ID: new_id()}
    if named.startswith("unknown_service"):
        described = described.merge(Resource({SERVICE_NAME: conventions.SCOPE}))
    return Resource(own).merge(described)


def _room(variable: str) -> int:
    configured = os.environ.get(variable, "")
    return int(configured) if configured.isdecimal() and int(configured) else QUEUE


def _silence() -> None:
    for name in NOISY:
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
