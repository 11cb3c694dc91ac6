"""A metrics server that takes OTLP and answers PromQL, while a test runs."""

import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

import httpx2

START_SECONDS: Final = 30.0
STOP_SECONDS: Final = 10.0


class MetricsServer:
    """What a running server knows.

    Attributes:
        otlp: the base URL for exporters, as `--otlp` takes it.

    """

    def __init__(self, url: str) -> None:
        self.otlp: Final = f"{url}/opentelemetry"
        # Past any proxy: the server is on this machine.
        self._client: Final = httpx2.Client(base_url=url, trust_env=False, timeout=10)

    def is_up(self) -> bool:
        """Whether it answers."""
        try:
            return self._client.get("/health").is_success
        except httpx2.TransportError:
            return False

    def flush(self) -> None:
        """Make what has arrived visible to queries."""
        self._client.get("/internal/force_flush").raise_for_status()

    def write(self, lines: str) -> None:
        """Store points in Prometheus's text format, each with its time in milliseconds."""
        self._client.post("/api/v1/import/prometheus", content=lines).raise_for_status()
        self.flush()

    def query(self, expression: str) -> list[tuple[Mapping[str, str], float]]:
        """Return labels and value of each series that an expression gives at this moment."""
        result = self._ask("/api/v1/query", query=expression)["result"]
        return [(series["metric"], float(series["value"][1])) for series in result]

    def series(self, selector: str) -> list[Mapping[str, str]]:
        """Return the labels of the series that a selector matches."""
        found: list[Mapping[str, str]] = self._ask("/api/v1/series", **{"match[]": selector})
        return found

    def _ask(self, path: str, **parameters: str) -> Any:
        response = self._client.post(path, data=parameters)
        response.raise_for_status()
        return response.json()["data"]

    def close(self) -> None:
        self._client.close()


@contextmanager
def running(program: Path, directory: Path) -> Iterator[MetricsServer]:
    """Run a metrics server on a free port, and stop it for certain.

    Args:
        directory: where it keeps its data and its log.

    """
    port = _free_port()
    log = directory / "log"
    command = [
        str(program),
        f"-httpListenAddr=127.0.0.1:{port}",
        f"-storageDataPath={directory / 'data'}",
        "-opentelemetry.usePrometheusNaming",
        "-search.latencyOffset=0s",
        "-loggerLevel=WARN",
    ]
    server = MetricsServer(f"http://127.0.0.1:{port}")
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env={"PATH": os.environ["PATH"]}
        )
        try:
            _await_start(process, server, log)
            yield server
        finally:
            server.close()
            _stop(process)


def _await_start(process: "subprocess.Popen[bytes]", server: MetricsServer, log: Path) -> None:
    end = monotonic() + START_SECONDS
    while not server.is_up():
        said = f"the metrics server does not answer:\n{log.read_text(encoding='utf-8')}"
        assert process.poll() is None, said
        assert monotonic() < end, said
        sleep(0.05)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
