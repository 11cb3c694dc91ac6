"""Where the span of an attempt stands: under the caller's, or under the registration's."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from interceptors import MemoryAuditSink
from seriatim.runtime.run import Observers
from telemetry import Telemetry
from tests.support.gateways import Era, Gateway, running, serving, write_workspace

pytestmark = pytest.mark.anyio

TRACE, SPAN = "a" * 32, "b" * 16
CALLER = {"traceparent": f"00-{TRACE}-{SPAN}-01"}


@pytest.fixture
def anyio_backend() -> str:
    """uvicorn runs on asyncio alone."""
    return "asyncio"


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> Era:
    return request.param


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
async def gateway(tmp_path: Path, exporter: InMemorySpanExporter) -> AsyncIterator[Gateway]:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry = Telemetry(
        provider,
        NoOpMeterProvider(),
        traces=True,
        metrics=False,
        capture=False,
        close=provider.shutdown,
    )
    audit = MemoryAuditSink()
    async with (
        running(write_workspace(tmp_path), audit, Observers(telemetry)) as run,
        serving(run, audit) as gateway,
    ):
        yield gateway


def named(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if span.name == name]


async def test_the_callers_traceparent_is_the_parent(
    gateway: Gateway, exporter: InMemorySpanExporter, era: Era
) -> None:
    async with gateway.over_http("ada", era) as ada:
        await ada.call_tool("get-convention", {}, meta=CALLER)
        await ada.call_tool("echo", {}, meta=CALLER)
    for name in ("execute_tool get-convention", "execute_tool echo"):
        [span] = named(exporter, name)
        assert span.parent is not None
        assert (f"{span.parent.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE, SPAN)
        assert span.status.is_unset
    assert [row.trace_id for row in gateway.audit.records] == [TRACE, TRACE]


async def test_a_traceparent_of_the_http_request_is_the_parent_where_meta_has_none(
    gateway: Gateway, exporter: InMemorySpanExporter, era: Era
) -> None:
    elsewhere = f"00-{'c' * 32}-{'d' * 16}-01"
    async with gateway.over_http("ada", era, traceparent=elsewhere) as ada:
        await ada.call_tool("echo", {})
        await ada.call_tool("get-convention", {}, meta=CALLER)
    [from_header] = named(exporter, "execute_tool echo")
    [from_meta] = named(exporter, "execute_tool get-convention")
    assert from_header.parent is not None
    assert from_meta.parent is not None
    assert f"{from_header.parent.trace_id:032x}" == "c" * 32
    assert f"{from_meta.parent.trace_id:032x}" == TRACE


async def test_without_a_traceparent_the_registration_is_the_parent(
    gateway: Gateway, exporter: InMemorySpanExporter, era: Era
) -> None:
    async with gateway.over_http("ada", era) as ada:
        await ada.call_tool("echo", {})
        await ada.call_tool("get-convention", {})
    registrations = named(exporter, "seriatim.registration")
    assert len(registrations) == 2  # of ada and of bob
    [of_ada] = [s for s in registrations if (s.attributes or {}).get("gen_ai.agent.name") == "ada"]
    for name in ("execute_tool echo", "execute_tool get-convention"):
        [span] = named(exporter, name)
        assert span.parent is not None
        assert span.parent.span_id == of_ada.context.span_id


async def test_nothing_else_opens_a_span_in_the_gateway(
    gateway: Gateway, exporter: InMemorySpanExporter, era: Era
) -> None:
    async with gateway.over_http("ada", era) as ada:
        await ada.list_tools()
        await ada.call_tool("get-convention", {})
    names = sorted(span.name for span in exporter.get_finished_spans())
    assert names == [
        "execute_tool get-convention",
        "seriatim.registration",
        "seriatim.registration",
    ]


async def test_the_server_sees_the_callers_trace_and_not_its_span(
    gateway: Gateway, era: Era
) -> None:
    async with gateway.over_http("ada", era) as ada:
        result = await ada.call_tool("echo", {}, meta=CALLER | {"baggage": "team=blue"})
    [block] = result.content
    assert TRACE in str(block)
    assert SPAN not in str(block)
    assert "team=blue" in str(block)
