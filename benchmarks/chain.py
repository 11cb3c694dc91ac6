"""What the chain costs: nanoseconds of a call through no, one, three and five interceptors.

Run: python benchmarks/chain.py

Every round measures each case once, one after the other, so that a busy machine slows all of them
alike; the figures are medians over the rounds.
"""

import statistics
import time
from collections.abc import Mapping

import anyio

from interceptors import (
    UNKNOWN_TO_ALL,
    AgentId,
    AuditInterceptor,
    AuditRecord,
    CallId,
    Completed,
    DecisionId,
    Handler,
    Interceptor,
    IsolatedInterceptor,
    Outcome,
    PermissionInterceptor,
    Permit,
    PrerequisiteInterceptor,
    Redactor,
    Rules,
    RunId,
    Scope,
    SkillId,
    SkillState,
    Standing,
    Tier,
    TierPolicy,
    ToolCall,
    ToolRef,
    ToolResult,
    Via,
    compose,
)

ROUNDS = 200
CALLS = 200
GUARDED, FIRST = SkillId("get-build-convention"), SkillId("list-build-conventions")
RESULT = Completed(ToolResult(({"type": "text", "text": "Use the wrapper script."},)))
MET = Standing({FIRST: SkillState.COMPLETED})


class ForgetfulSink:
    """Takes rows and keeps none: the cost of making a row, without that of storing it."""

    async def ready(self) -> None:
        pass

    async def write(self, record: AuditRecord) -> None:
        pass

    def waiting(self) -> int:
        return 0


async def terminal(_call: ToolCall, /) -> Outcome:
    return RESULT


async def passing(call: ToolCall, proceed: Handler, /) -> Outcome:
    return await proceed(call)


def gate() -> list[Interceptor]:
    rules = Rules({GUARDED: (FIRST,)})
    permits = {GUARDED: Permit(Tier.CAUTIOUS, "server conventions", frozenset({"read"}), True)}
    return [
        PrerequisiteInterceptor(rules),
        PermissionInterceptor(TierPolicy(permits, frozenset({"read"}))),
    ]


def audit() -> Interceptor:
    return AuditInterceptor(ForgetfulSink(), "benchmark", Redactor(["a-secret-value"]), hidden={})


def a_call(standing: Standing) -> ToolCall:
    return ToolCall(
        id=CallId("1"),
        decision=DecisionId("1"),
        scope=Scope(RunId("run"), AgentId("agent")),
        skill=GUARDED,
        tool=ToolRef("conventions", "get"),
        arguments={"name": "wrapper"},
        via=Via.MODEL,
        standing=standing,
    )


def cases() -> Mapping[str, tuple[Handler, ToolCall]]:
    met, unmet = a_call(MET), a_call(UNKNOWN_TO_ALL)
    return {
        "bare await": (terminal, met),
        "1 interceptor": (compose([passing], terminal), met),
        "3 interceptors": (compose([passing] * 3, terminal), met),
        "5 interceptors": (compose([passing] * 5, terminal), met),
        "1 isolated user interceptor": (
            compose([IsolatedInterceptor("passing", passing, 10, Redactor())], terminal),
            met,
        ),
        "prerequisite met": (compose(gate()[:1], terminal), met),
        "prerequisite met, permission": (compose(gate(), terminal), met),
        "audit, prerequisite met, permission": (compose([audit(), *gate()], terminal), met),
        "audit, prerequisite unmet: a refusal": (compose([audit(), *gate()], terminal), unmet),
    }


async def nanoseconds(handler: Handler, call: ToolCall) -> float:
    before = time.perf_counter_ns()
    for _ in range(CALLS):
        await handler(call)
    return (time.perf_counter_ns() - before) / CALLS


async def main() -> None:
    found: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for name, (handler, call) in cases().items():
            found.setdefault(name, []).append(await nanoseconds(handler, call))
    bare = statistics.median(found["bare await"])
    print(f"{ROUNDS} rounds of {CALLS} calls; median ns a call\n")
    print(f"{'case':<40}{'ns':>10}{'over bare':>12}{'fastest':>10}")
    for name, values in found.items():
        median = statistics.median(values)
        print(f"{name:<40}{median:>10,.0f}{median - bare:>12,.0f}{min(values):>10,.0f}")
    five = statistics.median(found["5 interceptors"])
    print(f"\na layer: {(five - bare) / 5:,.0f} ns")


if __name__ == "__main__":
    anyio.run(main)
