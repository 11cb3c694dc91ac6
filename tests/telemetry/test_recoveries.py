"""From a success to the refusal that led to it: the link, and what is counted."""

import gc
import tracemalloc
from collections.abc import Iterable
from typing import Any

import pytest

from interceptors import (
    Completed,
    Failed,
    Missing,
    NotGranted,
    NoTool,
    Outcome,
    PermissionDenied,
    Redactor,
    Refused,
    RunId,
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
    ExecutionTimes,
    KnownNames,
    MetricsInterceptor,
    Recoveries,
    RecoveryInterceptor,
    TracingInterceptor,
)

pytestmark = pytest.mark.anyio

DONE = Completed(ToolResult())
UNMET = Refused(UnmetPrerequisites((Missing(SkillId("a"), SkillState.NOT_CALLED),), (), ()))


class Story:
    """Plays calls with given outcomes through tracing and recovery."""

    def __init__(self, tracing: Any, metering: Any, make_call: Any) -> None:
        self.recoveries = Recoveries(KnownNames(["a", "c", "hours"]), metering.provider)
        self._interceptors = [
            TracingInterceptor(Redactor(), tracer_provider=tracing.provider),
            RecoveryInterceptor(self.recoveries),
        ]
        self._make_call = make_call

    async def play(self, steps: Iterable[tuple[str, Outcome]], **scope: str) -> None:
        for skill, outcome in steps:

            async def terminal(_call: ToolCall, outcome: Outcome = outcome) -> Outcome:
                return outcome

            call = self._make_call(skill, **scope)
            assert await compose(self._interceptors, terminal)(call) is outcome


@pytest.fixture
def story(tracing: Any, metering: Any, make_call: Any) -> Story:
    return Story(tracing, metering, make_call)


async def test_a_recovered_call_links_to_the_refusal_that_taught_it(
    story: Story, tracing: Any
) -> None:
    await story.play([("c", UNMET), ("a", DONE), ("c", DONE), ("c", DONE)])
    refused, prerequisite, recovered, again = tracing.spans
    (link,) = recovered.links
    assert link.context == refused.context
    assert dict(link.attributes) == {"seriatim.link": "recovered_from"}
    assert [span.links for span in (refused, prerequisite, again)] == [(), (), ()]


async def test_the_link_goes_to_the_latest_refusal_and_the_calls_count_from_the_first(
    story: Story, tracing: Any, metering: Any
) -> None:
    await story.play(
        [("c", UNMET), ("c", UNMET), ("a", Failed(TimedOut(1))), ("a", DONE), ("c", DONE)]
    )
    assert tracing.spans[-1].links[0].context == tracing.spans[1].context
    attributes = {
        "gen_ai.agent.name": "alice",
        "gen_ai.tool.name": "c",
        "seriatim.rule.id": "requires",
    }
    assert metering.points("seriatim.recoveries") == [(attributes, 1)]
    assert metering.points("seriatim.recovery.calls") == [(attributes, 4)]


async def test_a_success_of_another_agent_or_run_recovers_nothing(
    story: Story, tracing: Any, metering: Any
) -> None:
    await story.play([("c", UNMET)])
    await story.play([("c", DONE)], agent="bob")
    await story.play([("c", DONE)], run="run-2")
    assert not any(span.links for span in tracing.spans)
    assert metering.points("seriatim.recoveries") == []


async def test_what_was_never_recovered_is_counted_when_the_run_ends(
    story: Story, metering: Any
) -> None:
    await story.play([("c", UNMET), ("c", UNMET), ("c", Failed(TimedOut(1)))])
    await story.play([("c", UNMET)], run="run-2")
    story.recoveries.end(RunId("run-1"))
    story.recoveries.end(RunId("run-1"))
    assert [value for _, value in metering.points("seriatim.unrecovered")] == [1]
    await story.play([("c", DONE)])
    assert metering.points("seriatim.recoveries") == []


async def test_a_refusal_that_names_no_way_is_nothing_to_recover_from(
    story: Story, tracing: Any, metering: Any
) -> None:
    await story.play([("c", Refused(PermissionDenied("strict"))), ("c", DONE)])
    assert not tracing.spans[-1].links
    assert metering.points("seriatim.recoveries") == []


async def test_a_users_interceptor_can_teach_too(story: Story, metering: Any) -> None:
    await story.play([("c", Refused(Withheld("hours", "Later."))), ("c", DONE)])
    ((attributes, value),) = metering.points("seriatim.recoveries")
    assert (attributes["seriatim.rule.id"], value) == ("hours", 1)


async def test_thousands_of_names_that_nobody_knows_leave_nothing_behind(
    metering: Any, make_call: Any
) -> None:
    names, times = KnownNames(["a"]), ExecutionTimes()
    recoveries = Recoveries(names, metering.provider)

    async def refuse(_call: ToolCall, /) -> Outcome:
        return Refused(NotGranted((SkillId("a"),)))

    chain = compose(
        [
            TracingInterceptor(Redactor()),
            RecoveryInterceptor(recoveries),
            MetricsInterceptor(names, times, metering.provider),
        ],
        refuse,
    )

    async def send(names: range) -> None:
        for name in names:
            await chain(make_call(f"{name:01000}", tool=NoTool()))

    await send(range(100))
    tracemalloc.start()
    try:
        await send(range(100, 3_100))
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 100_000, "names of 3 MB were sent"
    recoveries.end(RunId("run-1"))
    assert metering.points("seriatim.unrecovered") == []
