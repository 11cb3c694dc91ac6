"""The spans above the calls: agents, model requests, registrations, and whose child they are."""

from typing import Any

import anyio
import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.context import Context
from opentelemetry.trace import (
    NonRecordingSpan,
    NoOpTracerProvider,
    SpanContext,
    SpanKind,
    StatusCode,
)

from interceptors import AgentId, RunId, Scope
from telemetry import RunSpans, caller_context, current_trace, record_response

pytestmark = pytest.mark.anyio

SCOPE = Scope(RunId("run-1"), AgentId("alice"))
CHILD = Scope(RunId("run-1"), AgentId("bob"))
TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"


@pytest.fixture
def spans(tracing: Any) -> RunSpans:
    return RunSpans(tracing.provider)


async def test_a_run_reads_like_a_story(spans: RunSpans, tracing: Any) -> None:
    with spans.agent(SCOPE, "team"):
        with spans.model_request(SCOPE, "openai", "gpt-x") as request:
            record_response(
                request, model="gpt-x-1", input_tokens=5, output_tokens=7, finish_reasons=["stop"]
            )
        with spans.turn(request), spans.agent(CHILD, "team"):
            pass
    chat, child, root = tracing.spans
    assert [span.name for span in (root, chat, child)] == [
        "invoke_agent alice",
        "chat gpt-x",
        "invoke_agent bob",
    ]
    assert chat.parent.span_id == root.context.span_id
    assert child.parent.span_id == chat.context.span_id
    assert (root.kind, chat.kind) == (SpanKind.INTERNAL, SpanKind.CLIENT)
    assert dict(chat.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.response.model": "gpt-x-1",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 5,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.agent.name": "alice",
        "gen_ai.conversation.id": "run-1",
        "seriatim.run": "run-1",
    }
    assert root.attributes["seriatim.topology"] == "team"


async def test_an_error_names_its_type_and_not_its_message(spans: RunSpans, tracing: Any) -> None:
    with pytest.raises(RuntimeError), spans.model_request(SCOPE, "p", "m"):
        raise RuntimeError("Authorization: Bearer abc")
    span = tracing.only()
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "RuntimeError"
    assert "Bearer" not in span.to_json()


async def test_a_cancelled_agent_ends_with_a_status(spans: RunSpans, tracing: Any) -> None:
    with anyio.move_on_after(0), spans.agent(SCOPE, "team"):
        await anyio.sleep_forever()
    assert tracing.only().attributes["error.type"] == "cancelled"
    assert current_trace() == ()


async def test_a_registration_has_a_root_of_its_own_that_is_seen_at_once(
    spans: RunSpans, tracing: Any
) -> None:
    with spans.agent(CHILD, "team"):
        registered = spans.registration(SCOPE)
        span = tracing.only()
    assert span.name == "seriatim.registration"
    assert span.parent is None
    token = context.attach(registered)
    tracing.provider.get_tracer("test").start_span("call").end()
    context.detach(token)
    assert tracing.spans[-1].parent.span_id == span.context.span_id


async def test_a_registration_for_a_task_stands_under_the_task(
    spans: RunSpans, tracing: Any
) -> None:
    with spans.agent(CHILD, "team"):
        within = spans.under_current()
    within.registration(CHILD)
    task, registered = tracing.spans
    assert registered.parent.span_id == task.context.span_id


async def test_the_callers_context_comes_from_the_meta_of_its_request() -> None:
    meta = {
        "traceparent": f"00-{TRACE}-{SPAN}-01",
        "tracestate": "vendor=1",
        "baggage": "tenant=acme",
        "progressToken": 5,
    }
    found = caller_context(meta, Context())
    here = trace.get_current_span(found).get_span_context()
    assert trace.format_trace_id(here.trace_id) == TRACE
    assert trace.format_span_id(here.span_id) == SPAN
    assert here.is_remote
    assert here.trace_state["vendor"] == "1"
    assert baggage.get_baggage("tenant", found) == "acme"


@pytest.mark.parametrize(
    "meta",
    [
        {},
        {"traceparent": None},
        {"traceparent": 7},
        {"traceparent": ""},
        {"traceparent": "rubbish"},
        {"traceparent": f"ff-{TRACE}-{SPAN}-01"},
        {"traceparent": f"00-{'0' * 32}-{SPAN}-01"},
        {"traceparent": f"00-{TRACE}-{'0' * 16}-01"},
        {"traceparent": f"00-{TRACE}-{SPAN}-01-more"},
        {"traceparent": "0" * 100_000, "tracestate": "x" * 100_000},
    ],
)
@pytest.mark.filterwarnings("ignore")
async def test_a_broken_or_absent_context_falls_back(
    spans: RunSpans, meta: dict[str, object]
) -> None:
    fallback = spans.registration(SCOPE)
    found = caller_context(meta, fallback)
    assert trace.get_current_span(found) is trace.get_current_span(fallback)


async def test_headers_serve_where_the_meta_says_nothing() -> None:
    headers = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
    found = caller_context({}, caller_context(headers, Context()))
    assert trace.get_current_span(found).get_span_context().is_remote


async def test_without_telemetry_a_turn_stays_in_the_callers_trace() -> None:
    spans = RunSpans(NoOpTracerProvider())
    here = trace.set_span_in_context(NonRecordingSpan(SpanContext(1, 2, is_remote=False)))
    token = context.attach(here)
    try:
        with spans.model_request(SCOPE, "openai", "gpt-x") as request:
            pass
        with spans.turn(request):
            assert trace.get_current_span().get_span_context().trace_id == 1
    finally:
        context.detach(token)
