"""A real Jaeger for tests, and what its query API says."""

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
import yaml

PLENTY: Final = 30.0
"""Seconds for what takes one on a machine that is not busy."""

Tags = dict[str, Any]


@dataclass(frozen=True)
class Span:
    """A span as Jaeger shows it.

    Attributes:
        parent: the id of the span above it, or `""`.
        links: trace and span of what it follows from, beside its parent.
        events: name and fields of each.
    """

    trace: str
    id: str
    parent: str
    name: str
    service: str
    tags: Tags
    links: Sequence[tuple[str, str]]
    events: Sequence[tuple[str, Tags]]


class Trace:
    """The spans of one trace."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.spans: Final = spans

    def named(self, name: str) -> list[Span]:
        """Return the spans of this name, the one that began first coming first."""
        return [span for span in self.spans if span.name == name]

    def tagged(self, key: str, value: object) -> list[Span]:
        return [span for span in self.spans if span.tags.get(key) == value]

    def below(self, span: Span) -> list[Span]:
        return [child for child in self.spans if child.parent == span.id]

    def tree(self) -> list[Any]:
        """Return the names as nested lists: a span alone is a name, else a name and its children.

        Children are sorted by name, because those of one turn begin in any order.
        """
        ids = {span.id for span in self.spans}
        roots = [span for span in self.spans if span.parent not in ids]
        return sorted((self._branch(root) for root in roots), key=str)

    def _branch(self, span: Span) -> Any:
        children = sorted((self._branch(child) for child in self.below(span)), key=str)
        return [span.name, children] if children else span.name


class Jaeger:
    """A Jaeger that runs, with a store that goes when it ends.

    Args:
        otlp: where it takes OTLP over HTTP.
        query: where it answers.
    """

    def __init__(self, otlp: str, query: str) -> None:
        self.otlp: Final = otlp
        # Past every proxy: it is on this machine.
        self._client: Final = httpx2.Client(base_url=query, trust_env=False, timeout=PLENTY)

    def is_ready(self) -> bool:
        try:
            return self._client.get("/api/services").status_code == httpx2.codes.OK
        except httpx2.TransportError:
            return False

    def trace(self, trace: str, last: str) -> Trace:
        """Return a trace, as soon as it has a span of the name `last`."""
        found: list[Trace] = []

        def arrived() -> bool:
            answer = self._client.get(f"/api/traces/{trace}")
            if answer.status_code == httpx2.codes.OK:
                found[:] = [_trace(answer.json()["data"][0])]
            return any(known.named(last) for known in found)

        wait_for(arrived, lambda: f"`{last}` in {[known.tree() for known in found]}")
        return found[0]

    def search(self, service: str, tags: Mapping[str, str]) -> list[Trace]:
        """Return the traces of a service that have a span with all these tags."""
        query = {"service": service, "limit": "100", "lookback": "1h", "tags": json.dumps(tags)}
        answer = self._client.get("/api/traces", params=query).raise_for_status()
        return [_trace(data) for data in answer.json()["data"]]

    def ids(self, service: str, tags: Mapping[str, str]) -> set[str]:
        """Return the ids of the traces that a search finds."""
        return {trace.spans[0].trace for trace in self.search(service, tags)}

    def close(self) -> None:
        self._client.close()


@contextmanager
def running_jaeger(binary: str, directory: Path) -> Iterator[Jaeger]:
    """Run Jaeger on free ports of this machine, and stop it for certain.

    Args:
        directory: where its configuration and its log go.
    """
    otlp, query = _free_ports(2)
    config = directory / "jaeger.yaml"
    config.write_text(yaml.safe_dump(_config(otlp, query)), encoding="utf-8")
    with (
        (directory / "jaeger.log").open("w+") as log,
        subprocess.Popen(
            [binary, "--config", str(config)],
            stdout=log,
            stderr=log,
            # It would trace itself, into whatever listens on the usual port of this machine.
            env={**os.environ, "OTEL_TRACES_SAMPLER": "always_off"},
        ) as process,
    ):
        jaeger = Jaeger(f"http://127.0.0.1:{otlp}", f"http://127.0.0.1:{query}")
        try:
            wait_for(
                lambda: process.poll() is not None or jaeger.is_ready(),
                lambda: f"Jaeger; it says {(directory / 'jaeger.log').read_text()}",
            )
            assert process.poll() is None, (directory / "jaeger.log").read_text()
            yield jaeger
        finally:
            jaeger.close()
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()


def wait_for(found: Callable[[], bool], what: Callable[[], str]) -> None:
    """Look again and again: another process has no event to wait for.

    Args:
        what: says what is awaited, for the failure.
    """
    end = time.monotonic() + PLENTY
    while not found():
        assert time.monotonic() < end, f"waited in vain for {what()}"
        time.sleep(0.02)


def _config(otlp: int, query: int) -> dict[str, Any]:
    return {
        "service": {
            "extensions": ["jaeger_storage", "jaeger_query"],
            "pipelines": {
                "traces": {"receivers": ["otlp"], "exporters": ["jaeger_storage_exporter"]}
            },
            "telemetry": {"metrics": {"level": "none"}, "logs": {"level": "warn"}},
        },
        "extensions": {
            # Not the store in memory: in 1.76 it takes `error=true` of a search for `error=false`.
            "jaeger_storage": {"backends": {"badger": {"badger": {"ephemeral": True}}}},
            "jaeger_query": {
                "storage": {"traces": "badger"},
                "http": {"endpoint": f"127.0.0.1:{query}"},
                "grpc": {"endpoint": "127.0.0.1:0"},
            },
        },
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{otlp}"}}}},
        "exporters": {"jaeger_storage_exporter": {"trace_storage": "badger"}},
    }


def _free_ports(number: int) -> list[int]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [int(listener.getsockname()[1]) for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def _trace(data: Any) -> Trace:
    spans = sorted(data["spans"], key=lambda span: span["startTime"])
    return Trace([_span(span, data["processes"]) for span in spans])


def _span(span: Any, processes: Any) -> Span:
    references = span["references"]
    above = [reference for reference in references if reference["refType"] == "CHILD_OF"]
    return Span(
        trace=span["traceID"],
        id=span["spanID"],
        parent=above[0]["spanID"] if above else "",
        name=span["operationName"],
        service=processes[span["processID"]]["serviceName"],
        tags=_tags(span["tags"]),
        links=[
            (reference["traceID"], reference["spanID"])
            for reference in references
            if reference["refType"] == "FOLLOWS_FROM"
        ],
        events=[_event(_tags(log["fields"])) for log in span["logs"]],
    )


def _tags(entries: Any) -> Tags:
    return {entry["key"]: entry["value"] for entry in entries}


def _event(fields: Tags) -> tuple[str, Tags]:
    return fields.pop("event"), fields
