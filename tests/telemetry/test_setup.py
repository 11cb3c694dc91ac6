"""Export for real: to a receiver on this machine, and to ones that are down, deaf or slow."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.proto.logs.v1.logs_pb2 import SEVERITY_NUMBER_INFO

from interceptors import (
    Completed,
    Missing,
    Outcome,
    Redactor,
    Refused,
    SkillId,
    SkillState,
    ToolCall,
    ToolResult,
    UnmetPrerequisites,
    compose,
)
from telemetry import (
    ExecutionTimer,
    ExecutionTimes,
    KnownNames,
    MetricsInterceptor,
    Recoveries,
    RecoveryInterceptor,
    Telemetry,
    TelemetrySettingError,
    TracingInterceptor,
    start_telemetry,
)
from telemetry.settings import read_settings
from telemetry.setup import start

UNMET = Refused(UnmetPrerequisites((Missing(SkillId("a"), SkillState.NOT_CALLED),), (), ()))
DONE = Completed(ToolResult())

PROMISED = 2.0
"""Seconds by which an exit may be delayed."""
SLACK = 1.5
"""Seconds that a busy machine may add before a test calls the promise broken."""


def started(environ: dict[str, str], flag: str = "") -> tuple[Telemetry, list[str]]:
    said: list[str] = []
    return start(read_settings(environ, flag), said.append), said


async def play(telemetry: Telemetry, make_call: Any, steps: list[tuple[str, Outcome]]) -> None:
    recoveries = Recoveries(KnownNames(["a", "c"]), telemetry.meter_provider)
    times = ExecutionTimes()
    interceptors = [
        TracingInterceptor(
            Redactor(),
            event_form=telemetry.event_form,
            tracer_provider=telemetry.tracer_provider,
        ),
        RecoveryInterceptor(recoveries),
        MetricsInterceptor(KnownNames(["a", "c"]), times, telemetry.meter_provider),
        ExecutionTimer(times),
    ]
    for skill, outcome in steps:

        async def terminal(_call: ToolCall, outcome: Outcome = outcome) -> Outcome:
            return outcome

        await compose(interceptors, terminal)(make_call(skill, call_id="\ud800"))


@pytest.mark.anyio
@pytest.mark.parametrize("by_flag", [True, False], ids=["flag", "variable"])
async def test_the_wire_carries_the_refusal_and_its_recovery(
    receiver: Any, make_call: Any, monkeypatch: pytest.MonkeyPatch, by_flag: bool
) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    variable = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint}
    for key, value in variable.items():
        monkeypatch.setenv(key, value)
    telemetry, said = started(*(({}, receiver.endpoint + "/") if by_flag else (variable,)))
    await play(telemetry, make_call, [("c", UNMET), ("a", DONE), ("c", DONE)])
    telemetry.close()

    refused, _, recovered = receiver.spans()
    (event,) = refused.events
    fields = {attribute.key: attribute.value for attribute in event.attributes}
    assert event.name == "seriatim.refusal"
    assert fields["policy_decision"].string_value == "deny"
    assert [v.string_value for v in fields["seriatim.missing"].array_value.values] == ["a"]
    assert recovered.links[0].span_id == refused.span_id
    assert receiver.resource()["service.name"] == "seriatim"
    assert receiver.resource()["service.instance.id"]
    assert receiver.resource()["deployment.environment.name"] == "test"
    assert {
        "seriatim.decisions",
        "seriatim.recoveries",
        "seriatim.recovery.calls",
        "seriatim.call.duration",
        "seriatim.gate.duration",
        "seriatim.telemetry.dropped",
    } <= receiver.metric_names()
    assert said == []


@pytest.mark.anyio
async def test_one_switch_sends_the_same_event_as_a_log_event_and_not_on_the_span(
    receiver: Any, make_call: Any
) -> None:
    by_span, _ = started({"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint}, receiver.endpoint)
    await play(by_span, make_call, [("c", UNMET)])
    by_span.close()
    as_log = {"SERIATIM_REFUSAL_EVENTS": "log"}
    by_log, said = started(as_log, receiver.endpoint)
    await play(by_log, make_call, [("c", UNMET)])
    by_log.close()

    with_event, without = receiver.spans()
    (on_span,) = with_event.events
    (record,) = receiver.events()
    assert list(without.events) == []
    assert record.event_name == on_span.name == "seriatim.refusal"
    assert (record.trace_id, record.span_id) == (without.trace_id, without.span_id)
    sent, shown = ({a.key: a.value for a in form.attributes} for form in (record, on_span))
    decision = "seriatim.decision.id"  # two calls, two decisions
    assert sent.pop(decision) != shown.pop(decision)
    assert sent == shown
    assert record.severity_number == SEVERITY_NUMBER_INFO
    assert without.start_time_unix_nano <= record.time_unix_nano <= without.end_time_unix_nano
    assert said == []


@pytest.mark.anyio
async def test_log_events_go_where_their_own_variables_say_even_without_spans(
    receiver: Any, make_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {
        "SERIATIM_REFUSAL_EVENTS": "log",
        "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": f"{receiver.endpoint}/v1/logs",
        "OTEL_EXPORTER_OTLP_LOGS_HEADERS": "x-tenant=acme",
    }
    for key, value in environ.items():
        monkeypatch.setenv(key, value)
    telemetry, said = started(environ)
    await play(telemetry, make_call, [("c", UNMET), ("a", DONE)])
    telemetry.close()
    (record,) = receiver.events()
    assert record.event_name == "seriatim.refusal"
    assert receiver.headers[0]["x-tenant"] == "acme"
    assert (receiver.traces, receiver.metrics) == ([], [])
    assert said == []


@pytest.mark.anyio
async def test_a_log_event_stays_on_the_span_where_logs_are_not_exported(
    receiver: Any, make_call: Any
) -> None:
    telemetry, _ = started(
        {"SERIATIM_REFUSAL_EVENTS": "log", "OTEL_LOGS_EXPORTER": "none"}, receiver.endpoint
    )
    await play(telemetry, make_call, [("c", UNMET)])
    telemetry.close()
    ((event,),) = (span.events for span in receiver.spans())
    assert event.name == "seriatim.refusal"
    assert receiver.logs == []


@pytest.mark.anyio
async def test_every_signal_can_be_shown_and_sent_and_is_counted_once(
    make_call: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    environ = {f"OTEL_{signal}_EXPORTER": "otlp,console" for signal in ("TRACES", "LOGS")}
    with answering(404, after=0) as endpoint:
        telemetry, said = started(
            {**environ, "SERIATIM_REFUSAL_EVENTS": "log", "OTEL_METRICS_EXPORTER": "none"}, endpoint
        )
        await play(telemetry, make_call, [("c", UNMET)])
        telemetry.close()
    (line,) = said
    assert line.startswith("telemetry: 1 span and 1 log event could not be delivered to")
    out, err = capfd.readouterr()
    assert out == ""
    assert '"event_name": "seriatim.refusal"' in err
    assert '"name": "execute_tool c"' in err


@pytest.mark.anyio
async def test_log_events_that_are_not_delivered_are_counted_and_said(make_call: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        host = f"127.0.0.1:{closed.getsockname()[1]}"
    telemetry, said = started(
        {"SERIATIM_REFUSAL_EVENTS": "log", "OTEL_METRICS_EXPORTER": "none"}, f"http://{host}"
    )
    await play(telemetry, make_call, [("c", UNMET), ("c", UNMET)])
    telemetry.close()
    assert said == [
        f"telemetry: 2 spans and 2 log events could not be delivered to {host}",
    ]


def test_the_standard_variables_reach_the_sdk(
    receiver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "gate-7")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=acme")
    telemetry, _ = started({"OTEL_METRICS_EXPORTER": "none"}, receiver.endpoint)
    telemetry.tracer_provider.get_tracer("test").start_span("a").end()
    telemetry.close()
    assert receiver.resource()["service.name"] == "gate-7"
    assert receiver.headers[0]["x-tenant"] == "acme"
    assert (telemetry.traces, telemetry.metrics) == (True, False)


def test_a_sampler_that_drops_sends_nothing_and_loses_nothing(
    receiver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    telemetry, said = started({"OTEL_METRICS_EXPORTER": "none"}, receiver.endpoint)
    telemetry.tracer_provider.get_tracer("test").start_span("a").end()
    telemetry.close()
    assert receiver.traces == []
    assert said == []


def test_a_second_close_does_nothing() -> None:
    telemetry, said = started({}, "http://127.0.0.1:1")
    telemetry.close()
    count = len(said)
    telemetry.close()
    assert len(said) == count


@pytest.mark.parametrize("variable", ["OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BLRP_MAX_QUEUE_SIZE"])
def test_a_variable_that_the_sdk_does_not_take_is_an_error_that_says_so(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "10")
    with pytest.raises(TelemetrySettingError, match="max_export_batch_size"):
        started({"SERIATIM_REFUSAL_EVENTS": "log"}, "http://127.0.0.1:1")


def test_grpc_without_its_package_is_an_error_that_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("trace_exporter", "metric_exporter", "_log_exporter"):
        name = f"opentelemetry.exporter.otlp.proto.grpc.{module}"
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(TelemetrySettingError) as caught:
        started({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http://127.0.0.1:1")
    assert "seriatim[otlp-grpc]" in caught.value.hint


def test_with_nothing_set_nothing_is_started() -> None:
    with start_telemetry({}) as telemetry:
        assert not telemetry.enabled
        assert not telemetry.tracer_provider.get_tracer("x").start_span("y").is_recording()
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    assert "Proxy" in type(metrics.get_meter_provider()).__name__


# What follows runs as a process of its own: an exit can be timed in no other way, and the global
# providers are set once a process.

SCRIPT = """
import os, sys, time
from opentelemetry import metrics, trace
from opentelemetry.proto.logs.v1.logs_pb2 import SEVERITY_NUMBER_INFO
from telemetry import start_telemetry
with start_telemetry(os.environ) as telemetry:
    tracer = trace.get_tracer("test")
    metrics.get_meter("test").create_counter("count").add(1)
    slowest = 0.0
    for _ in range(int(sys.argv[1])):
        started = time.perf_counter()
        span = tracer.start_span("span")
        telemetry.event_form(span, "event", {"of": "the span"})
        span.end()
        slowest = max(slowest, time.perf_counter() - started)
    print(slowest, time.time(), flush=True)
"""


def exit_of(endpoint: str, spans: int = 5, **variables: str) -> tuple[float, str]:
    """Return the seconds from leaving telemetry to the end of the process, and its stderr."""
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(spans)],
        env={"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "NO_PROXY": "127.0.0.1", **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    ended = time.time()
    slowest, leaving = map(float, process.stdout.split())
    assert slowest < 0.5, "a span waited for the backend"
    return ended - leaving, process.stderr


@contextmanager
def black_hole() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def answering(status: int, after: float) -> Iterator[str]:
    leaving = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            leaving.wait(after)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  its name
            pass

        def handle(self) -> None:
            with suppress(OSError):  # the process under test has left
                super().handle()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        leaving.set()
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def refused_port() -> Iterator[str]:
    yield "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("protocol", "spans"), [("http/protobuf", 5), ("http/protobuf", 4000), ("grpc", 5)]
)
@pytest.mark.parametrize("backend", [refused_port, black_hole], ids=["refused", "black-hole"])
def test_a_dead_backend_holds_the_exit_for_two_seconds_at_most(
    backend: Any, protocol: str, spans: int
) -> None:
    with backend() as endpoint:
        seconds, said = exit_of(endpoint, spans, OTEL_EXPORTER_OTLP_PROTOCOL=protocol)
        host = endpoint.removeprefix("http://")
    assert seconds < PROMISED + SLACK
    assert said == (
        f"telemetry: {spans} spans and the latest metrics could not be delivered to {host}\n"
    )


@pytest.mark.parametrize(
    ("backend", "protocol"),
    [(black_hole, "http/protobuf"), (refused_port, "grpc")],
    ids=["black-hole", "refused"],
)
def test_log_events_hold_the_exit_no_longer_and_are_counted_too(
    backend: Any, protocol: str
) -> None:
    as_logs = {"SERIATIM_REFUSAL_EVENTS": "log", "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}
    with backend() as endpoint:
        seconds, said = exit_of(endpoint, 3000, **as_logs)
        host = endpoint.removeprefix("http://")
    assert seconds < PROMISED + SLACK
    assert said == (
        "telemetry: 3000 spans, 3000 log events and the latest metrics "
        f"could not be delivered to {host}\n"
    )


def test_a_backend_slower_than_the_exit_is_given_up() -> None:
    with answering(200, after=30) as endpoint:
        seconds, said = exit_of(endpoint)
    assert seconds < PROMISED + SLACK
    assert said.startswith("telemetry: 5 spans and the latest metrics could not")
    assert said.count("\n") == 1


def test_a_backend_that_declines_is_said_at_once() -> None:
    with answering(404, after=0) as endpoint:
        seconds, said = exit_of(endpoint, OTEL_EXPORTER_OTLP_HEADERS="authorization=hunter22222")
    assert seconds < PROMISED
    assert said.startswith("telemetry: 5 spans")
    assert "hunter22222" not in said


def test_a_backend_that_takes_its_time_gets_everything() -> None:
    with answering(200, after=0.3) as endpoint:
        seconds, said = exit_of(endpoint)
    assert seconds < PROMISED + SLACK
    assert said == ""


def test_the_console_is_stderr() -> None:
    _, said = exit_of("", OTEL_TRACES_EXPORTER="console", OTEL_METRICS_EXPORTER="console")
    assert '"name": "span"' in said
    assert '"name": "count"' in said


def test_global_providers_that_somebody_has_set_are_used() -> None:
    script = (
        "from opentelemetry import trace\n"
        "from opentelemetry.sdk.trace import TracerProvider\n"
        "theirs = TracerProvider()\n"
        "trace.set_tracer_provider(theirs)\n"
        "from telemetry import start_telemetry\n"
        "with start_telemetry({'OTEL_EXPORTER_OTLP_ENDPOINT': 'http://127.0.0.1:1'}) as ours:\n"
        "    print(ours.tracer_provider is theirs, ours.enabled)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("True True\n", "")


def test_log_events_go_to_the_global_logger_provider_that_somebody_has_set() -> None:
    script = (
        "from opentelemetry import _logs, trace\n"
        "from opentelemetry.sdk._logs import LoggerProvider\n"
        "from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter\n"
        "from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor\n"
        "from opentelemetry.sdk.trace import TracerProvider\n"
        "theirs = LoggerProvider()\n"
        "kept = InMemoryLogRecordExporter()\n"
        "theirs.add_log_record_processor(SimpleLogRecordProcessor(kept))\n"
        "_logs.set_logger_provider(theirs)\n"
        "trace.set_tracer_provider(TracerProvider())\n"
        "from telemetry import start_telemetry\n"
        "with start_telemetry({'SERIATIM_REFUSAL_EVENTS': 'log'}) as ours:\n"
        "    span = ours.tracer_provider.get_tracer('test').start_span('a')\n"
        "    ours.event_form(span, 'seriatim.refusal', {})\n"
        "(kept,) = kept.get_finished_logs()\n"
        "sent = kept.log_record\n"
        "print(sent.event_name, sent.span_id == span.context.span_id, span.events)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("seriatim.refusal True ()\n", "")
