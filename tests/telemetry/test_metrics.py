"""The metrics of the gate: what is counted, and that no attribute is unbounded."""

from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from interceptors import (
    Completed,
    Failed,
    Handler,
    Missing,
    NotGranted,
    NoTool,
    Outcome,
    Refused,
    SkillId,
    SkillState,
    TimedOut,
    ToolCall,
    ToolResult,
    UnmetPrerequisites,
    Withheld,
    compose,
)
from telemetry import (
    ExecutionTimer,
    ExecutionTimes,
    KnownNames,
    MetricsInterceptor,
    conventions,
    observe_audit_queue,
)
from telemetry.metrics import observe_dropped

pytestmark = pytest.mark.anyio

DONE = Completed(ToolResult())
UNMET = Refused(
    UnmetPrerequisites(
        (
            Missing(SkillId("a"), SkillState.NOT_CALLED),
            Missing(SkillId("b"), SkillState.UNSUCCESSFUL),
        ),
        (),
        (),
    )
)
SKILL = {
    "gen_ai.agent.name": "alice",
    "gen_ai.tool.name": "get-rule",
    "seriatim.server": "docs",
}


def chain(metering: Any, terminal: Handler, *between: Any) -> Handler:
    times = ExecutionTimes()
    names = KnownNames(["get-rule", "a", "b", "hours"])
    outer = MetricsInterceptor(names, times, metering.provider)
    return compose([outer, *between, ExecutionTimer(times)], terminal)


def answering(outcome: Outcome) -> Any:
    async def answer(_call: ToolCall, _proceed: Any = None) -> Outcome:
        return outcome

    return answer


async def test_a_decision_is_counted_by_agent_skill_and_rule(metering: Any, make_call: Any) -> None:
    await chain(metering, answering(DONE))(make_call())
    await chain(metering, answering(DONE), answering(UNMET))(make_call())
    counted = metering.points("seriatim.decisions")
    allowed = {**SKILL, "seriatim.via": "model", "policy_decision": "allow"}
    denied = {
        **SKILL,
        "seriatim.via": "model",
        "policy_decision": "deny",
        "seriatim.rule.id": "requires",
    }
    assert counted == [(allowed, 1), (denied, 1)]
    assert metering.points("seriatim.prerequisites.missed") == [
        ({**SKILL, "seriatim.prerequisite": "a"}, 1),
        ({**SKILL, "seriatim.prerequisite": "b"}, 1),
    ]


async def test_a_failure_is_an_allowed_call_with_its_kind(metering: Any, make_call: Any) -> None:
    await chain(metering, answering(Failed(TimedOut(1))))(make_call())
    ((attributes, _),) = metering.points("seriatim.call.duration")
    assert attributes == {**SKILL, "seriatim.outcome": "failed", "error.type": "timeout"}
    ((decision, _),) = metering.points("seriatim.decisions")
    assert decision["policy_decision"] == "allow"


async def test_a_cancelled_call_is_counted_and_leaves_nothing_in_flight(
    metering: Any, make_call: Any
) -> None:
    started = anyio.Event()

    async def terminal(_call: ToolCall) -> Outcome:
        started.set()
        await anyio.sleep_forever()
        raise AssertionError

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(chain(metering, terminal), make_call())
        with anyio.fail_after(5):
            await started.wait()
        assert metering.points("seriatim.calls.active") == [(SKILL, 1)]
        tasks.cancel_scope.cancel()
    assert metering.points("seriatim.calls.active") == [(SKILL, 0)]
    ((attributes, _),) = metering.points("seriatim.call.duration")
    assert attributes["error.type"] == "cancelled"


async def test_the_time_in_the_gate_leaves_the_execution_out(
    metering: Any, make_call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("telemetry.metrics.time", SimpleNamespace(perf_counter=lambda: now))

    async def slow_tool(_call: ToolCall) -> Outcome:
        nonlocal now
        now += 5
        return DONE

    async def slow_gate(call: ToolCall, proceed: Handler) -> Outcome:
        nonlocal now
        now += 1
        outcome = await proceed(call)
        now += 2
        return outcome

    await chain(metering, slow_tool, slow_gate)(make_call())
    attributes = {"gen_ai.agent.name": "alice", "policy_decision": "allow"}
    assert metering.points("seriatim.gate.duration") == [(attributes, 3)]
    assert [seconds for _, seconds in metering.points("seriatim.call.duration")] == [8]


async def test_names_from_outside_the_topology_are_one_value(metering: Any, make_call: Any) -> None:
    for number in range(20):
        call = make_call(f"invented-{number}", tool=NoTool(), run=f"run-{number}")
        await chain(metering, answering(Refused(NotGranted(()))))(call)
        withheld = Refused(Withheld(f"by-{number}", "No."))
        await chain(metering, answering(withheld))(call)
    points = metering.points("seriatim.decisions")
    assert sorted(attributes["seriatim.rule.id"] for attributes, _ in points) == [
        "(unknown)",
        "grant",
    ]
    assert {attributes["gen_ai.tool.name"] for attributes, _ in points} == {"(unknown)"}
    assert all(value == 20 for _, value in points)


async def test_the_buckets_suit_what_is_measured(metering: Any, make_call: Any) -> None:
    await chain(metering, answering(DONE))(make_call())
    assert metering.boundaries("seriatim.gate.duration") == conventions.GATE_SECONDS
    assert metering.boundaries("seriatim.call.duration") == conventions.CALL_SECONDS
    assert sorted(conventions.GATE_SECONDS) == list(conventions.GATE_SECONDS)


async def test_the_queue_of_the_audit_log_and_lost_telemetry_are_observed(metering: Any) -> None:
    observe_audit_queue(lambda: 7, metering.provider)
    observe_dropped({"traces": lambda: 3, "logs": lambda: 1}, metering.provider)
    assert metering.points("seriatim.audit.queue") == [({}, 7)]
    assert metering.points("seriatim.telemetry.dropped") == [
        ({"seriatim.signal": "traces"}, 3),
        ({"seriatim.signal": "logs"}, 1),
    ]


async def test_execution_times_keep_nothing_of_a_call_that_has_ended(
    metering: Any, make_call: Any
) -> None:
    times = ExecutionTimes()
    outer = MetricsInterceptor(KnownNames([]), times, metering.provider)
    call = make_call()
    await compose([outer, ExecutionTimer(times)], answering(DONE))(call)
    assert times.take(call) == 0.0
