"""What the environment and the command line ask of telemetry, without the SDK."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, final
from urllib.parse import urlsplit


class TelemetrySettingError(Exception):
    """A setting that cannot be followed.

    Attributes:
        hint: the way out, as a clause.
    """

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint: Final = hint


class Signal(Enum):
    """A kind of telemetry, by the word that the `OTEL_*` variables use for it."""

    TRACES = "traces"
    METRICS = "metrics"
    LOGS = "logs"


class Exporter(Enum):
    """Where a signal goes. The console is stderr: stdout belongs to data and to stdio servers."""

    OTLP = "otlp"
    CONSOLE = "console"


class Protocol(Enum):
    """How OTLP travels."""

    HTTP = "http/protobuf"
    GRPC = "grpc"


class EventKind(Enum):
    """What the event of a refusal is to be: an event of its span, or a log event."""

    SPAN = "span"
    LOG = "log"


@final
@dataclass(frozen=True, slots=True)
class SignalSettings:
    """What is asked of one signal.

    Attributes:
        exporters: empty when the signal is off.
        endpoint: the base URL given on the command line; `""` leaves it to the `OTEL_*` variables,
            which the exporters read by themselves.
        host: the host and port it goes to, for messages; free of paths, credentials and queries.
    """

    signal: Signal
    exporters: tuple[Exporter, ...]
    protocol: Protocol
    endpoint: str
    host: str


@final
@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """What is asked of every signal.

    Attributes:
        logs: off unless refusals leave as log events; nothing else of ours is one.
        refusals: how the events of refusals leave.
        capture: whether spans may show arguments and results.
    """

    traces: SignalSettings
    metrics: SignalSettings
    logs: SignalSettings
    refusals: EventKind
    capture: bool

    @property
    def wanted(self) -> bool:
        """Whether anything is to be exported."""
        signals = (self.traces, self.metrics, self.logs)
        return any(signal.exporters for signal in signals)


REFUSAL_EVENTS: Final = "SERIATIM_REFUSAL_EVENTS"
"""The variable that says how the event of a refusal leaves: on its `span` (the default, which trace
back ends show), or as a `log` event of the same name with the same attributes. Where log events are
asked for and logs are not exported, it stays on the span: it is never lost, and never there twice.
"""

CAPTURE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The variable by which instrumentations of generative AI show contents; ours the arguments and
results of tools."""


def read_settings(environ: Mapping[str, str], otlp_endpoint: str = "") -> TelemetrySettings:
    """Return what the standard variables, and the flag, ask for; with none set, nothing.

    Args:
        otlp_endpoint: a base URL; takes the place of the variables that name an endpoint.

    Raises:
        TelemetrySettingError: when an exporter, a protocol or a kind of event is unknown, or the
            endpoint is no URL.
    """
    disabled = environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    refusals = _event_kind(environ)
    return TelemetrySettings(
        traces=_signal(Signal.TRACES, environ, otlp_endpoint, disabled),
        metrics=_signal(Signal.METRICS, environ, otlp_endpoint, disabled),
        logs=_signal(Signal.LOGS, environ, otlp_endpoint, disabled or refusals is EventKind.SPAN),
        refusals=refusals,
        capture=environ.get(CAPTURE, "").strip().lower() in ("true", "span_only", "span_and_event"),
    )


def _signal(
    signal: Signal, environ: Mapping[str, str], otlp_endpoint: str, disabled: bool
) -> SignalSettings:
    name = signal.value.upper()
    protocol = _protocol(name, environ)
    endpoint = _url(otlp_endpoint, "--otlp") if otlp_endpoint else ""
    variables = (f"OTEL_EXPORTER_OTLP_{name}_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    sent_to = endpoint or next((environ[key] for key in variables if environ.get(key)), "")
    default = "http://localhost:4317" if protocol is Protocol.GRPC else "http://localhost:4318"
    chosen = environ.get(f"OTEL_{name}_EXPORTER", "").strip() or ("otlp" if sent_to else "none")
    exporters = () if disabled else _exporters(f"OTEL_{name}_EXPORTER", chosen)
    return SignalSettings(signal, exporters, protocol, endpoint, _host(sent_to or default))


def _event_kind(environ: Mapping[str, str]) -> EventKind:
    chosen = environ.get(REFUSAL_EVENTS, "").strip().lower() or EventKind.SPAN.value
    for kind in EventKind:
        if kind.value == chosen:
            return kind
    raise TelemetrySettingError(
        f"`{REFUSAL_EVENTS}` is `{chosen}`, which is no kind of event", "use `span` or `log`"
    )


def _exporters(variable: str, chosen: str) -> tuple[Exporter, ...]:
    names = [name.strip().lower() for name in chosen.split(",") if name.strip()]
    known = {exporter.value: exporter for exporter in Exporter}
    for name in names:
        if name not in known and name != "none":
            raise TelemetrySettingError(
                f"`{variable}` names the exporter `{name}`, which is unknown",
                "use `otlp`, `console` or `none`",
            )
    return () if "none" in names else tuple(dict.fromkeys(known[name] for name in names))


def _protocol(name: str, environ: Mapping[str, str]) -> Protocol:
    for variable in (f"OTEL_EXPORTER_OTLP_{name}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if chosen := environ.get(variable, "").strip().lower():
            for protocol in Protocol:
                if protocol.value == chosen:
                    return protocol
            raise TelemetrySettingError(
                f"`{variable}` names the protocol `{chosen}`, which is not supported",
                "use `http/protobuf` or `grpc`",
            )
    return Protocol.HTTP


def _url(text: str, source: str) -> str:
    url = text if "://" in text else f"http://{text}"
    if not url.lower().startswith(("http://", "https://")) or not _host(url):
        raise TelemetrySettingError(
            f"`{source}` is `{text}`, which is no http or https URL",
            "name the collector's base URL, for instance `http://localhost:4318`",
        )
    return url.rstrip("/")


def _host(url: str) -> str:
    """Return host and port of a URL, without the credentials that it may hold; `""` for none."""
    try:
        return urlsplit(url if "://" in url else f"//{url}").netloc.rpartition("@")[2]
    except ValueError:
        return ""
