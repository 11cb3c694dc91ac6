"""The span of an attempt: its shape for each outcome, under both event loops."""

import json
import logging
from typing import Any

import anyio
import pytest
from opentelemetry import context, trace
from opentelemetry.trace import SpanKind, StatusCode

from interceptors import (
    BrokenArguments,
    Completed,
    Failed,
    GateUnavailable,
    InvalidArguments,
    Missing,
    NotGranted,
    NoTool,
    Outcome,
    ProtocolError,
    Raised,
    Redactor,
    Refused,
    ServerUnavailable,
    SkillId,
    SkillState,
    Standing,
    TimedOut,
    ToolCall,
    ToolError,
    ToolResult,
    UnmetPrerequisites,
    Unrecorded,
    Withheld,
    refusal_text,
)
from telemetry import TracingInterceptor, current_trace
from telemetry.bounds import TEXT_CHARACTERS

pytestmark = pytest.mark.anyio

DONE = Completed(ToolResult(({"type": "text", "text": "the rule, api_key=abc123456"},)))
UNMET = UnmetPrerequisites(
    (Missing(SkillId("list-rules"), SkillState.NOT_CALLED),),
    (),
    ((SkillId("login"), SkillId("open")), (SkillId("list-rules"),)),
)


async def attempt(interceptor: TracingInterceptor, call: ToolCall, outcome: Outcome) -> Outcome:
    async def proceed(_call: ToolCall) -> Outcome:
        return outcome

    return await interceptor(call, proceed)


@pytest.fixture
def interceptor(tracing: Any) -> TracingInterceptor:
    return TracingInterceptor(Redactor(), tracer_provider=tracing.provider)


async def test_a_completed_call_is_one_internal_span_with_the_names_of_the_conventions(
    interceptor: TracingInterceptor, tracing: Any, make_call: Any
) -> None:
    call = make_call()
    assert await attempt(interceptor, call, DONE) is DONE
    span = tracing.only()
    assert span.name == "execute_tool get-rule"
    assert span.kind is SpanKind.INTERNAL
    assert span.status.status_code is StatusCode.UNSET
    assert span.events == ()
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get-rule",
        "gen_ai.tool.type": "extension",
        "gen_ai.tool.call.id": "call-1",
        "gen_ai.agent.name": "alice",
        "gen_ai.conversation.id": "run-1",
        "seriatim.run": "run-1",
        "seriatim.decision.id": call.decision,
        "seriatim.via": "model",
        "seriatim.server": "docs",
        "seriatim.tool": "get_rule",
        "policy_decision": "allow",
    }


async def test_a_refusal_is_an_event_that_carries_all_that_the_agent_was_told(
    interceptor: TracingInterceptor, tracing: Any, make_call: Any
) -> None:
    standing = Standing(
        {
            SkillId("search"): SkillState.COMPLETED,
            SkillId("login"): SkillState.UNSUCCESSFUL,
        }
    )
    call = make_call(standing=standing)
    await attempt(interceptor, call, Refused(UNMET))
    span = tracing.only()
    assert span.status.status_code is StatusCode.UNSET
    assert span.attributes["policy_decision"] == "deny"
    assert span.attributes["seriatim.rule.id"] == "requires"
    assert span.attributes["seriatim.missing"] == ("list-rules",)
    assert "error.type" not in span.attributes
    (event,) = span.events
    assert event.name == "seriatim.refusal"
    assert dict(event.attributes) == {
        "policy_decision": "deny",
        "seriatim.rule.id": "requires",
        "seriatim.reason": refusal_text("get-rule", UNMET),
        "seriatim.decision.id": call.decision,
        "seriatim.missing": ("list-rules",),
        "seriatim.remedy": ("login, open", "list-rules"),
        "seriatim.completed": ("search",),
        "gen_ai.tool.name": "get-rule",
        "gen_ai.agent.name": "alice",
    }


@pytest.mark.parametrize(
    ("refusal", "rule"),
    [
        (NotGranted(("a",)), "grant"),
        (GateUnavailable("ledger unavailable"), "gate"),
        (Withheld("office-hours", "Closed."), "office-hours"),
    ],
)
async def test_every_kind_of_refusal_is_a_denial_and_no_error(
    interceptor: TracingInterceptor, tracing: Any, make_call: Any, refusal: Any, rule: str
) -> None:
    await attempt(interceptor, make_call(), Refused(refusal))
    span = tracing.only()
    assert span.status.status_code is StatusCode.UNSET
    assert span.attributes["seriatim.rule.id"] == rule
    assert span.events[0].attributes["seriatim.reason"] == refusal_text("get-rule", refusal)


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (ToolError(ToolResult(({"type": "text", "text": "password=hunter22222"},))), "tool_error"),
        (ProtocolError(-32603, "token: abcdefghij"), "protocol_error"),
        (TimedOut(3.0), "timeout"),
        (ServerUnavailable("docs", "it died"), "server_unavailable"),
        (InvalidArguments("they are not valid JSON"), "invalid_arguments"),
        (Raised("execution", "ValueError: secret=abcdefghij"), "raised"),
        (Unrecorded("audit log unavailable"), "unrecorded"),
    ],
)
async def test_a_failure_is_an_error_that_shows_neither_results_nor_secrets(
    interceptor: TracingInterceptor, tracing: Any, make_call: Any, failure: Any, kind: str
) -> None:
    await attempt(interceptor, make_call(), Failed(failure))
    span = tracing.only()
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == kind
    assert span.attributes["policy_decision"] == "allow"
    assert span.events == ()
    assert "get-rule" in span.status.description
    assert "hunter22222" not in span.to_json()
    assert "abcdefghij" not in span.to_json()


async def test_a_tool_that_returns_the_text_of_a_refusal_is_no_refusal(
    interceptor: TracingInterceptor, tracing: Any, make_call: Any
) -> None:
    forged = ToolResult(({"type": "text", "text": refusal_text("get-rule", UNMET)},))
    await attempt(interceptor, make_call(), Failed(ToolError(forged)))
    span = tracing.only()
    assert span.attributes["policy_decision"] == "allow"
    assert span.events == ()


async def test_arguments_and_results_are_shown_on_request_and_redacted(
    tracing: Any, make_call: Any
) -> None:
    interceptor = TracingInterceptor(
        Redactor(["from-the-environment"]),
        hidden={SkillId("get-rule"): ["pin"]},
        capture=True,
        tracer_provider=tracing.provider,
    )
    arguments = {"id": 7, "pin": 1234, "token": "x", "note": "from-the-environment"}
    await attempt(interceptor, make_call(arguments=arguments), DONE)
    await attempt(interceptor, make_call(arguments=BrokenArguments("{", "broken")), Refused(UNMET))
    completed, refused = tracing.spans
    assert json.loads(completed.attributes["gen_ai.tool.call.arguments"]) == {
        "id": 7,
        "pin": "[redacted]",
        "token": "[redacted]",
        "note": "[redacted]",
    }
    assert completed.attributes["gen_ai.tool.call.result"] == "the rule, api_key=[redacted]"
    assert refused.attributes["gen_ai.tool.call.arguments"] == "{"
    assert "gen_ai.tool.call.result" not in refused.attributes


async def test_a_cancelled_call_ends_its_span_with_a_status_and_leaves_no_context_behind(
    interceptor: TracingInterceptor,
    tracing: Any,
    make_call: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    started = anyio.Event()

    async def proceed(_call: ToolCall) -> Outcome:
        started.set()
        await anyio.sleep_forever()
        raise AssertionError

    before = context.get_current()
    with caplog.at_level(logging.WARNING), anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(interceptor, make_call(), proceed)
            await started.wait()
            tasks.cancel_scope.cancel()
    span = tracing.only()
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "cancelled"
    assert span.end_time is not None
    assert context.get_current() == before
    assert not caplog.records


async def test_an_exception_that_passes_through_is_an_error_and_passes_on(
    interceptor: TracingInterceptor, tracing: Any, make_call: Any
) -> None:
    async def proceed(_call: ToolCall) -> Outcome:
        raise LookupError("password=hunter22222")

    with pytest.raises(LookupError):
        await interceptor(make_call(), proceed)
    span = tracing.only()
    assert span.attributes["error.type"] == "raised"
    assert "hunter22222" not in span.to_json()


async def test_calls_side_by_side_keep_their_contexts_apart(
    interceptor: TracingInterceptor, tracing: Any, make_call: Any
) -> None:
    tracer = tracing.provider.get_tracer("test")
    all_there = anyio.Event()
    waiting = 0

    async def proceed(call: ToolCall) -> Outcome:
        nonlocal waiting
        waiting += 1
        if waiting == 10:
            all_there.set()
        await all_there.wait()
        await anyio.to_thread.run_sync(lambda: tracer.start_span(f"send {call.id}").end())
        return DONE

    with tracer.start_as_current_span("run") as root, anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(interceptor, make_call(call_id=str(number)), proceed)
    attempts = {
        span.attributes["gen_ai.tool.call.id"]: span
        for span in tracing.spans
        if span.name.startswith("execute_tool")
    }
    sends = [span for span in tracing.spans if span.name.startswith("send")]
    assert len(attempts) == len(sends) == 10
    for send in sends:
        parent = attempts[send.name.removeprefix("send ")]
        assert send.parent.span_id == parent.context.span_id
        assert parent.parent.span_id == root.get_span_context().span_id


async def test_the_audit_row_is_given_the_ids_of_the_attempts_span(
    interceptor: TracingInterceptor, tracing: Any, make_call: Any
) -> None:
    seen = []

    async def proceed(_call: ToolCall) -> Outcome:
        seen.extend(current_trace())
        return DONE

    await interceptor(make_call(), proceed)
    here = tracing.only().context
    assert [(ids.trace, ids.span) for ids in seen] == [
        (trace.format_trace_id(here.trace_id), trace.format_span_id(here.span_id))
    ]
    assert current_trace() == ()


async def test_a_name_that_nobody_knows_stays_short_and_printable(
    interceptor: TracingInterceptor, tracing: Any, make_call: Any
) -> None:
    name = "ls\n\x1b[31m\ud800" + "x" * 10_000
    refused = Refused(NotGranted(("a",)))
    await attempt(interceptor, make_call(name, tool=NoTool()), refused)
    span = tracing.only()
    assert span.name.isprintable()
    assert len(span.name) < 300
    assert span.attributes["gen_ai.tool.name"] == span.name.removeprefix("execute_tool ")
    assert "seriatim.server" not in span.attributes


async def test_long_and_broken_texts_are_bounded(
    interceptor: TracingInterceptor, tracing: Any, make_call: Any
) -> None:
    refusal = Withheld("by\ud800" + "y" * 10_000, "no\udfff " + "z" * 10_000)
    await attempt(interceptor, make_call(call_id="\ud800" * 5_000), Refused(refusal))
    span = tracing.only()
    texts = [*span.attributes.values(), *span.events[0].attributes.values()]
    for text in texts:
        if isinstance(text, str):
            assert len(text) <= TEXT_CHARACTERS
            text.encode()


async def test_without_the_sdk_a_call_passes_unchanged(make_call: Any) -> None:
    interceptor = TracingInterceptor(Redactor())
    assert await attempt(interceptor, make_call(), DONE) is DONE
    assert await attempt(interceptor, make_call(), Refused(UNMET)) == Refused(UNMET)


async def test_no_secret_reaches_a_span_by_a_name_or_a_reason(tracing: Any, make_call: Any) -> None:
    interceptor = TracingInterceptor(
        Redactor(["supersecretvalue"]), tracer_provider=tracing.provider
    )

    async def withheld(_call: ToolCall, /) -> Outcome:
        return Refused(Withheld("mine", "Not with supersecretvalue."))

    await interceptor(make_call("drop supersecretvalue"), withheld)
    [span] = tracing.spans
    assert "supersecretvalue" not in span.to_json()
    assert "Not with [redacted]." in span.to_json()
