"""The OpenTelemetry SDK and its exporters: the only file that imports them."""

import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from threading import Lock, Thread
from typing import Final

from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord, ReadWriteLogRecord
from opentelemetry.sdk._logs.export import (
    BatchLogRecordProcessor,
    ConsoleLogRecordExporter,
    LogRecordExporter,
    LogRecordExportResult,
)
from opentelemetry.sdk.environment_variables import OTEL_BSP_MAX_QUEUE_SIZE
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
"""Spans that wait for export unless `OTEL_BSP_MAX_QUEUE_SIZE` says otherwise (the SDK's own)."""

NOISY: Final = ("opentelemetry.exporter", "opentelemetry.sdk")
"""Loggers that repeat on stderr, for every batch, what is said once at the end."""


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
    spans, events = ItemDelivery(_room()), ItemDelivery(_room())
    sums = MetricDelivery()
    span_exporters: list[SpanExporter] = []
    metric_exporters: list[MetricExporter] = []
    for exporter in settings.traces.exporters:
        match exporter:
            case Exporter.OTLP:
                span_exporters.append(_CountedSpanExporter(_span_exporter(settings.traces), spans))
            case Exporter.CONSOLE:
                span_exporters.append(ConsoleSpanExporter(out=sys.stderr))
    for exporter in settings.metrics.exporters:
        match exporter:
            case Exporter.OTLP:
                metric_exporters.append(
                    _CountedMetricExporter(_metric_exporter(settings.metrics), sums)
                )
            case Exporter.CONSOLE:
                metric_exporters.append(ConsoleMetricExporter(out=sys.stderr))

    log_exporters = [
        _CountedLogExporter(_log_exporter(settings.logs, exporter), events)
        for exporter in settings.logs.exporters
    ]

    tracer_provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    for span_exporter in span_exporters:
        tracer_provider.add_span_processor(_processor(span_exporter, spans))
    readers = [PeriodicExportingMetricReader(exporter) for exporter in metric_exporters]
    meter_provider = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
    observe_dropped(spans.lost, meter_provider)
    logger_provider = LoggerProvider(resource, shutdown_on_exit=False)
    for log_exporter in log_exporters:
        logger_provider.add_log_record_processor(_BoundedLogProcessor(log_exporter, events))

    def tell() -> None:
        losses = [
            (counted(spans.missing(), "span"), settings.traces.host, spans.missing()),
            (counted(events.missing(), "log event"), settings.logs.host, events.missing()),
            ("the latest metrics", settings.metrics.host, sums.missing()),
        ]
        for line in undelivered((what, host) for what, host, lost in losses if lost):
            say(line)

    return Telemetry(
        tracer_provider if span_exporters else NoOpTracerProvider(),
        meter_provider if metric_exporters else NoOpMeterProvider(),
        traces=bool(span_exporters),
        metrics=bool(metric_exporters),
        capture=settings.capture,
        close=_Close(
            [tracer_provider.shutdown, meter_provider.shutdown, logger_provider.shutdown],
            [
                *(exporter.shutdown for exporter in log_exporters),
                *(exporter.shutdown for exporter in span_exporters),
                *(exporter.shutdown for exporter in metric_exporters),
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


def _processor(exporter: SpanExporter, delivery: ItemDelivery) -> SpanProcessor:
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


def _span_exporter(settings: SignalSettings) -> SpanExporter:
    if settings.protocol is Protocol.HTTP:
        return OTLPSpanExporter(endpoint=_endpoint(settings, Signal.TRACES))
    try:
        # Here and not at the top: the package comes with an extra.
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (  # noqa: PLC0415  see above
            OTLPSpanExporter as GrpcSpanExporter,
        )
    except ImportError as error:
        raise _no_grpc() from error
    return GrpcSpanExporter(endpoint=settings.endpoint or None)


def _metric_exporter(settings: SignalSettings) -> MetricExporter:
    if settings.protocol is Protocol.HTTP:
        return OTLPMetricExporter(endpoint=_endpoint(settings, Signal.METRICS))
    try:
        # Here and not at the top: the package comes with an extra.
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import (  # noqa: PLC0415  see above
            OTLPMetricExporter as GrpcMetricExporter,
        )
    except ImportError as error:
        raise _no_grpc() from error
    return GrpcMetricExporter(endpoint=settings.endpoint or None)


def _log_exporter(settings: SignalSettings, exporter: Exporter) -> LogRecordExporter:
    match exporter:
        case Exporter.CONSOLE:
            return ConsoleLogRecordExporter(out=sys.stderr)
        case Exporter.OTLP if settings.protocol is Protocol.HTTP:
            return OTLPLogExporter(endpoint=_endpoint(settings, Signal.LOGS))
        case Exporter.OTLP:
            pass
    try:
        # Here and not at the top: the package comes with an extra.
        from opentelemetry.exporter.otlp.proto.grpc._log_exporter import (  # noqa: PLC0415  see above
            OTLPLogExporter as GrpcLogExporter,
        )
    except ImportError as error:
        raise _no_grpc() from error
    return GrpcLogExporter(endpoint=settings.endpoint or None)


def _endpoint(settings: SignalSettings, signal: Signal) -> str | None:
    """Return the URL for one signal; `None`, the exporters' word, leaves it to the variables."""
    return f"{settings.endpoint}/v1/{signal.value}" if settings.endpoint else None


def _no_grpc() -> TelemetrySettingError:
    return TelemetrySettingError(
        "OTLP over grpc needs a package that is not installed",
        "`pip install 'seriatim[otlp-grpc]'`, or set `OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf`",
    )


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


def _room() -> int:
    configured = os.environ.get(OTEL_BSP_MAX_QUEUE_SIZE, "")
    return int(configured) if configured.isdecimal() and int(configured) else QUEUE


def _silence() -> None:
    for name in NOISY:
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
