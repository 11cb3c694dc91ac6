"""What the standard variables and the flag ask for."""

import pytest

from telemetry import TelemetrySettingError
from telemetry.settings import REFUSAL_EVENTS, EventKind, Exporter, Protocol, read_settings

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


def test_with_no_variable_nothing_is_wanted() -> None:
    assert not read_settings({}).wanted
    assert not read_settings({"OTEL_SERVICE_NAME": "x", ENDPOINT: ""}).wanted


@pytest.mark.parametrize(
    ("environ", "flag", "traces", "metrics"),
    [
        ({ENDPOINT: "http://c:4318"}, "", True, True),
        ({}, "http://c:4318", True, True),
        ({}, "c:4318", True, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c/v1/traces"}, "", True, False),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c/v1/metrics"}, "", False, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "", True, False),
        ({"OTEL_METRICS_EXPORTER": "none", ENDPOINT: "http://c"}, "", True, False),
        ({"OTEL_TRACES_EXPORTER": "none"}, "http://c", False, True),
        ({"OTEL_SDK_DISABLED": "TRUE", ENDPOINT: "http://c"}, "http://c", False, False),
    ],
)
def test_a_signal_is_exported_when_something_asks_for_it(
    environ: dict[str, str], flag: str, traces: bool, metrics: bool
) -> None:
    settings = read_settings(environ, flag)
    assert bool(settings.traces.exporters) is traces
    assert bool(settings.metrics.exporters) is metrics
    assert settings.wanted is (traces or metrics)


def test_several_exporters_stand_side_by_side() -> None:
    settings = read_settings({"OTEL_TRACES_EXPORTER": "otlp, console,otlp"})
    assert settings.traces.exporters == (Exporter.OTLP, Exporter.CONSOLE)


def test_the_protocol_of_a_signal_goes_before_that_of_all() -> None:
    settings = read_settings(
        {
            "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
        }
    )
    assert settings.traces.protocol is Protocol.HTTP
    assert settings.metrics.protocol is Protocol.GRPC


@pytest.mark.parametrize(
    ("environ", "flag", "host"),
    [
        ({ENDPOINT: "https://user:secret@c.example:4318/path?key=secret"}, "", "c.example:4318"),
        ({}, "http://user:secret@c:1", "c:1"),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "", "localhost:4318"),
        (
            {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "",
            "localhost:4317",
        ),
        ({ENDPOINT: "http://a", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://b"}, "", "b"),
        ({ENDPOINT: "http://[broken"}, "", ""),
    ],
)
def test_the_host_is_shown_without_what_is_secret(
    environ: dict[str, str], flag: str, host: str
) -> None:
    assert read_settings(environ, flag).traces.host == host


@pytest.mark.parametrize(
    ("environ", "flag", "named"),
    [
        ({"OTEL_TRACES_EXPORTER": "jaeger"}, "", "jaeger"),
        ({"OTEL_METRICS_EXPORTER": "prometheus"}, "", "OTEL_METRICS_EXPORTER"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, "", "http/json"),
        ({REFUSAL_EVENTS: "both"}, "", REFUSAL_EVENTS),
        ({}, "ftp://c", "--otlp"),
        ({}, "http://", "--otlp"),
        ({}, "http://[broken", "--otlp"),
    ],
)
def test_what_cannot_be_followed_is_said_with_a_way_out(
    environ: dict[str, str], flag: str, named: str
) -> None:
    with pytest.raises(TelemetrySettingError, match=named) as caught:
        read_settings(environ, flag)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("value", "capture"), [("true", True), ("SPAN_ONLY", True), ("false", False), ("", False)]
)
def test_contents_are_shown_only_on_request(value: str, capture: bool) -> None:
    environ = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": value}
    assert read_settings(environ).capture is capture


@pytest.mark.parametrize(
    ("chosen", "kind"),
    [
        ({}, EventKind.SPAN),
        ({REFUSAL_EVENTS: "span"}, EventKind.SPAN),
        ({REFUSAL_EVENTS: "log"}, EventKind.LOG),
        ({REFUSAL_EVENTS: " LOG "}, EventKind.LOG),
    ],
)
def test_refusals_leave_as_log_events_only_when_asked_to(
    chosen: dict[str, str], kind: EventKind
) -> None:
    settings = read_settings({ENDPOINT: "http://127.0.0.1:4318", **chosen})
    assert settings.refusals is kind
    assert settings.logs.exporters == ((Exporter.OTLP,) if kind is EventKind.LOG else ())


@pytest.mark.parametrize(
    ("environ", "logs"),
    [
        ({"OTEL_LOGS_EXPORTER": "console"}, (Exporter.CONSOLE,)),
        ({"OTEL_LOGS_EXPORTER": "none", ENDPOINT: "http://c"}, ()),
        ({"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://c"}, (Exporter.OTLP,)),
        ({"OTEL_SDK_DISABLED": "true", ENDPOINT: "http://c"}, ()),
        ({}, ()),
    ],
)
def test_log_events_follow_the_variables_of_logs(
    environ: dict[str, str], logs: tuple[Exporter, ...]
) -> None:
    assert read_settings({**environ, REFUSAL_EVENTS: "log"}).logs.exporters == logs


def test_log_events_alone_are_wanted_too() -> None:
    environ = {"OTEL_LOGS_EXPORTER": "otlp"}
    assert not read_settings(environ).wanted
    assert read_settings({**environ, REFUSAL_EVENTS: "log"}).wanted
