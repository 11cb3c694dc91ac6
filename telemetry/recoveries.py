"""Recoveries: a skill that was refused, and later completed, in one scope."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, final

from opentelemetry import metrics, trace
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import SpanContext

from interceptors import (
    Completed,
    Handler,
    Outcome,
    Refused,
    RunId,
    Scope,
    SkillId,
    ToolCall,
    UnmetPrerequisites,
    Withheld,
    rule_name,
)
from telemetry import conventions
from telemetry.bounds import KnownNames


@dataclass(slots=True)
class _Lesson:
    """What a refusal taught: the latest one of a skill, and the calls made since the first."""

    refusal: SpanContext
    rule: str
    issued: datetime
    calls: int


@final
class Recoveries:
    """The refusals that have not been recovered from, per scope and skill.

    Only refusals that name a way count: those for want of a prerequisite, and those of a user's
    interceptor. The others say that a retry is no use. One object serves all runs of a process.

    Args:
        names: which names the metrics may bear.
        meter_provider: the global one unless given.
    """

    def __init__(self, names: KnownNames, meter_provider: MeterProvider | None = None) -> None:
        meter = metrics.get_meter(conventions.SCOPE, meter_provider=meter_provider)
        self._names: Final = names
        self._runs: Final[dict[RunId, dict[Scope, dict[SkillId, _Lesson]]]] = {}
        self._recoveries: Final = meter.create_counter(
            conventions.RECOVERIES, "{recovery}", "Skills refused, then completed, in one scope"
        )
        self._calls: Final = meter.create_histogram(
            conventions.RECOVERY_CALLS,
            "{call}",
            "Calls from the first refusal of a skill to its completion",
            explicit_bucket_boundaries_advisory=conventions.RECOVERY_STEPS,
        )
        self._unrecovered: Final = meter.create_counter(
            conventions.UNRECOVERED, "{skill}", "Skills refused and never completed in their run"
        )

    def issued(self, call: ToolCall) -> None:
        """Count a call towards each recovery that its scope has before it."""
        for lesson in self._lessons(call.scope).values():
            lesson.calls += 1

    def refused(self, call: ToolCall, refusal: UnmetPrerequisites | Withheld) -> None:
        """Remember the current span as the one whose refusal taught the agent."""
        here = trace.get_current_span().get_span_context()
        rule = self._names.of(refusal.by) if isinstance(refusal, Withheld) else rule_name(refusal)
        lessons = self._runs.setdefault(call.scope.run, {}).setdefault(call.scope, {})
        calls = lessons[call.skill].calls if call.skill in lessons else 0
        lessons[call.skill] = _Lesson(here, rule, call.issued, calls)

    def completed(self, call: ToolCall) -> None:
        """Record a recovery, and link the current span to the refusal, if there was one.

        A call of the turn that was refused has learned nothing from the refusal.
        """
        lessons = self._lessons(call.scope)
        lesson = lessons.get(call.skill)
        if lesson is None or call.issued <= lesson.issued:
            return
        del lessons[call.skill]
        if lesson.refusal.is_valid:
            span = trace.get_current_span()
            span.add_link(lesson.refusal, {conventions.LINK: conventions.RECOVERED_FROM})
        attributes = self._attributes(call.scope, call.skill, lesson)
        self._recoveries.add(1, attributes)
        self._calls.record(lesson.calls, attributes)

    def end(self, run: RunId) -> None:
        """Count what was never recovered from, and forget the run."""
        for scope, lessons in self._runs.pop(run, {}).items():
            for skill, lesson in lessons.items():
                self._unrecovered.add(1, self._attributes(scope, skill, lesson))

    def _lessons(self, scope: Scope) -> dict[SkillId, _Lesson]:
        return self._runs.get(scope.run, {}).get(scope, {})

    def _attributes(self, scope: Scope, skill: SkillId, lesson: _Lesson) -> dict[str, str]:
        return {
            conventions.AGENT: scope.agent,
            conventions.TOOL_NAME: self._names.of(skill),
            conventions.RULE: lesson.rule,
        }


class RecoveryInterceptor:
    """Tells `Recoveries` what happens. Stands directly inside tracing, whose span it links."""

    def __init__(self, recoveries: Recoveries) -> None:
        self._recoveries: Final = recoveries

    async def __call__(self, call: ToolCall, proceed: Handler, /) -> Outcome:
        self._recoveries.issued(call)
        outcome = await proceed(call)
        match outcome:
            case Completed():
                self._recoveries.completed(call)
            case Refused(UnmetPrerequisites() | Withheld() as refusal):
                self._recoveries.refused(call, refusal)
            case _:
                pass
        return outcome
