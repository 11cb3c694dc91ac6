"""Harnesses that trace themselves, and the calls of the gateway in their traces."""

import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import IO, Final

import anyio
import httpx2
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import format_trace_id

from interceptors import AuditRecord
from seriatim.stores.audit_log import open_audit_log
from tests.jaeger.server import Jaeger, Trace
from tests.support.gateways import REFUSAL, write_workspace

pytestmark = pytest.mark.timeout(120)

GATEWAY: Final = (sys.executable, "-m", "seriatim", "gateway")

CALLS: Final = ("get-convention", "list-conventions", "get-convention", "fail", "nope")
"""Refused, completed, recovered, failed, refused for good."""

HEADER: Final = f"00-{'c' * 32}-{'d' * 16}-01"
"""What a client over HTTP says of its trace beside `_meta`."""


@dataclass(frozen=True)
class Seen:
    """What a harness did, one task a call, each task a trace of its own.

    Attributes:
        service: the name under which the gateway reports.
        rows: the row of each call, in the order of the calls.
        traces: the trace of each call, in the same order.
        alone: the row of a call that the harness made outside every task.
    """

    service: str
    rows: list[AuditRecord]
    traces: list[Trace]
    alone: AuditRecord


@pytest.fixture(scope="module", params=["stdio", "http"])
def seen(
    request: pytest.FixtureRequest,
    jaeger: Jaeger,
    environment: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Seen:
    directory = tmp_path_factory.mktemp("gateway")
    service = f"gateway-{request.param}"
    variables = {**environment, "OTEL_SERVICE_NAME": service}
    reach = {"stdio": _over_stdio, "http": _over_http}[request.param]
    provider = TracerProvider(
        resource=Resource({"service.name": f"harness-{request.param}"}), shutdown_on_exit=False
    )
    exporter = OTLPSpanExporter(endpoint=f"{jaeger.otlp}/v1/traces")
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("harness")
    tasks: list[str] = []

    async def work() -> None:
        command = [*GATEWAY, str(write_workspace(directory)), "--agent", "ada"]
        async with reach([*command, "--otlp", jaeger.otlp], variables, stderr) as client:
            for name in CALLS:
                with tracer.start_as_current_span(f"task {name}") as span:
                    tasks.append(format_trace_id(span.get_span_context().trace_id))
                    await client.call_tool(name, {})
            await client.call_tool("echo", {})

    with pytest.MonkeyPatch.context() as patched, (directory / "stderr").open("w+") as stderr:
        patched.setenv("NO_PROXY", "127.0.0.1")
        anyio.run(work)
        provider.shutdown()
    assert "telemetry:" not in (directory / "stderr").read_text()
    with open_audit_log(directory / ".seriatim" / "audit.sqlite3") as log:
        *rows, alone = log.records({}, until=log.end())
    traces = [
        jaeger.trace(task, f"execute_tool {row.skill}")
        for task, row in zip(tasks, rows, strict=True)
    ]
    return Seen(service, rows, traces, alone)


@asynccontextmanager
async def _over_stdio(
    command: list[str], environment: Mapping[str, str], stderr: IO[str]
) -> AsyncIterator[Client]:
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=dict(environment))
    async with Client(stdio_client(parameters, errlog=stderr)) as client:
        yield client


@asynccontextmanager
async def _over_http(
    command: list[str], environment: Mapping[str, str], stderr: IO[str]
) -> AsyncIterator[Client]:
    command = [*command, "--http", "127.0.0.1:0"]
    async with await anyio.open_process(command, env=environment, stderr=stderr) as process:
        try:
            assert process.stdout is not None
            line = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 4096)
            entry = json.loads(line)
            headers = {"Authorization": f"Bearer {entry['token']}", "traceparent": HEADER}
            async with (
                httpx2.AsyncClient(headers=headers, trust_env=False) as http,
                Client(streamable_http_client(entry["url"], http_client=http)) as client,
            ):
                yield client
        finally:
            process.terminate()
        assert await process.wait() == 0


def test_each_call_stands_in_the_trace_of_the_task_that_made_it(seen: Seen) -> None:
    assert [trace.tree() for trace in seen.traces] == [
        [["task get-convention", ["execute_tool get-convention"]]],
        [["task list-conventions", [_called("list-conventions")]]],
        [["task get-convention", [_called("get-convention")]]],
        [["task fail", [_called("fail")]]],
        [["task nope", ["execute_tool nope"]]],
    ]


def _called(skill: str) -> list[object]:
    return [f"execute_tool {skill}", [f"MCP send tools/call {skill.replace('-', '_')}"]]


def test_each_row_names_its_span(seen: Seen) -> None:
    for row, trace in zip(seen.rows, seen.traces, strict=True):
        [span] = trace.named(f"execute_tool {row.skill}")
        assert (span.trace, span.id, span.service) == (row.trace_id, row.span_id, seen.service)
        assert span.tags["seriatim.decision.id"] == row.decision_id
        assert span.tags["seriatim.via"] == "gateway"


def test_the_tag_finds_exactly_the_refused_attempts(jaeger: Jaeger, seen: Seen) -> None:
    refused = {row.trace_id for row in seen.rows if row.outcome == "refused"}
    assert len(refused) == 2
    assert jaeger.ids(seen.service, {"policy_decision": "deny"}) == refused


def test_an_error_search_finds_exactly_the_failed_tool(jaeger: Jaeger, seen: Seen) -> None:
    [failed] = [row.trace_id for row in seen.rows if row.outcome == "failed"]
    assert jaeger.ids(seen.service, {"error": "true"}) == {failed}


def test_the_event_names_the_missing_prerequisite(seen: Seen) -> None:
    [span] = seen.traces[0].named("execute_tool get-convention")
    [(name, fields)] = span.events
    assert name == "seriatim.refusal"
    assert json.loads(fields["seriatim.missing"]) == ["list-conventions"]
    assert fields["seriatim.reason"] == REFUSAL
    assert fields["seriatim.decision.id"] == seen.rows[0].decision_id


def test_a_recovery_leads_to_its_refusal_in_another_trace(seen: Seen) -> None:
    links = [
        link
        for trace in seen.traces
        for span in trace.named("execute_tool get-convention")
        for link in span.links
    ]
    assert links == [(seen.rows[0].trace_id, seen.rows[0].span_id)]


def test_a_call_outside_every_task_goes_by_the_request_or_the_registration(
    jaeger: Jaeger, seen: Seen
) -> None:
    trace = jaeger.trace(seen.alone.trace_id or "", "execute_tool echo")
    if seen.service == "gateway-http":
        assert trace.tree() == [_called("echo")]
        [span] = trace.named("execute_tool echo")
        assert f"00-{span.trace}-{span.parent}-01" == HEADER
    else:
        assert trace.tree() == [["seriatim.registration", [_called("echo")]]]
