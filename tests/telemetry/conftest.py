"""What the tests of telemetry share: providers in memory, calls, and a local OTLP receiver."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from interceptors import (
    UNKNOWN_TO_ALL,
    AgentId,
    BrokenArguments,
    CallId,
    DecisionId,
    JsonObject,
    NoTool,
    RunId,
    Scope,
    SkillId,
    Standing,
    ToolCall,
    ToolRef,
    Via,
    new_id,
)

MakeCall = Callable[..., ToolCall]


@pytest.fixture
def make_call() -> MakeCall:
    def make(
        skill: str = "get-rule",
        *,
        run: str = "run-1",
        agent: str = "alice",
        tool: ToolRef | NoTool = ToolRef("docs", "get_rule"),  # noqa: B008  frozen
        arguments: JsonObject | BrokenArguments = MappingProxyType({}),
        standing: Standing = UNKNOWN_TO_ALL,
        call_id: str = "call-1",
    ) -> ToolCall:
        return ToolCall(
            id=CallId(call_id),
            decision=DecisionId(new_id()),
            scope=Scope(RunId(run), AgentId(agent)),
            skill=SkillId(skill),
            tool=tool,
            arguments=arguments,
            via=Via.MODEL,
            standing=standing,
        )

    return make


@dataclass
class Tracing:
    """A tracer provider that keeps its spans, in the order in which they ended."""

    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    provider: TracerProvider = field(default_factory=TracerProvider)

    def __post_init__(self) -> None:
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self.exporter.get_finished_spans()

    def only(self) -> ReadableSpan:
        (span,) = self.spans
        return span


@pytest.fixture
def tracing() -> Iterator[Tracing]:
    tracing = Tracing()
    yield tracing
    tracing.provider.shutdown()


@dataclass
class Metering:
    """A meter provider whose points can be read."""

    reader: InMemoryMetricReader = field(default_factory=InMemoryMetricReader)

    def __post_init__(self) -> None:
        self.provider = MeterProvider([self.reader])

    def points(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        """Return the attributes and the value of each point; of a histogram, its sum."""
        data = self.reader.get_metrics_data()
        return [
            (dict(point.attributes), getattr(point, "value", getattr(point, "sum", None)))
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]

    def boundaries(self, name: str) -> Sequence[float]:
        data = self.reader.get_metrics_data()
        assert data is not None
        return next(
            metric.data.data_points[0].explicit_bounds
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
        )


@pytest.fixture
def metering() -> Iterator[Metering]:
    metering = Metering()
    yield metering
    metering.provider.shutdown()


class Receiver:
    """An OTLP/HTTP receiver on a free port of this machine."""

    def __init__(self) -> None:
        self.traces: list[ExportTraceServiceRequest] = []
        self.metrics: list[ExportMetricsServiceRequest] = []
        self.logs: list[ExportLogsServiceRequest] = []
        self.headers: list[Mapping[str, str]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.headers.append(dict(self.headers))
                if self.path == "/v1/traces":
                    receiver.traces.append(ExportTraceServiceRequest.FromString(body))
                elif self.path == "/v1/metrics":
                    receiver.metrics.append(ExportMetricsServiceRequest.FromString(body))
                elif self.path == "/v1/logs":
                    receiver.logs.append(ExportLogsServiceRequest.FromString(body))
                self.send_response(200 if self.path.startswith("/v1/") else 404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  its name
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def spans(self) -> list[Any]:
        return [
            span
            for request in self.traces
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def events(self) -> list[Any]:
        return [
            record
            for request in self.logs
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    def resource(self) -> dict[str, str]:
        attributes = self.traces[0].resource_spans[0].resource.attributes
        return {attribute.key: attribute.value.string_value for attribute in attributes}

    def metric_names(self) -> set[str]:
        return {
            metric.name
            for request in self.metrics
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    receiver = Receiver()
    yield receiver
    receiver.close()
