"""Metrics of the gate and of the calls; every attribute is bounded by the topology."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, assert_never, final

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

from interceptors import (
    Cancelled,
    Completed,
    DecisionId,
    Failed,
    Handler,
    Outcome,
    Raised,
    Refused,
    ToolCall,
    ToolRef,
    UnmetPrerequisites,
    Withheld,
    error_kind,
    rule_name,
)
from telemetry import conventions
from telemetry.bounds import KnownNames


@final
class ExecutionTimes:
    """Carries the time that a call spent in execution from the inside of a chain to its outside.

    Belongs to one chain. Holds an entry only between a call's execution and its end.
    """

    def __init__(self) -> None:
        self._seconds: Final[dict[DecisionId, float]] = {}

    def spent(self, call: ToolCall, seconds: float) -> None:
        """Note what the execution of a call took."""
        self._seconds[call.decision] = seconds

    def take(self, call: ToolCall) -> float:
        """Return what the execution of a call took, zero for one that was not executed."""
        return self._seconds.pop(call.decision, 0.0)


class ExecutionTimer:
    """Times what it stands round. Innermost of the chain: what it leaves over is the gate's."""

    def __init__(self, times: ExecutionTimes) -> None:
        self._times: Final = times

    async def __call__(self, call: ToolCall, proceed: Handler, /) -> Outcome:
        started = time.perf_counter()
        try:
            return await proceed(call)
        finally:
            self._times.spent(call, time.perf_counter() - started)


class MetricsInterceptor:
    """Counts decisions and times calls. Stands inside tracing and outside audit.

    Args:
        names: which names the metrics may bear.
        times: those that the chain's `ExecutionTimer` notes.
        meter_provider: the global one unless given.
    """

    def __init__(
        self,
        names: KnownNames,
        times: ExecutionTimes,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        meter = metrics.get_meter(conventions.SCOPE, meter_provider=meter_provider)
        self._names: Final = names
        self._times: Final = times
        self._decisions: Final = meter.create_counter(
            conventions.DECISIONS, "{decision}", "Decisions of the gate"
        )
        self._missed: Final = meter.create_counter(
            conventions.MISSED,
            "{prerequisite}",
            "Prerequisites for want of which calls were refused",
        )
        self._active: Final = meter.create_up_down_counter(
            conventions.CALLS_ACTIVE, "{call}", "Calls that have no outcome yet"
        )
        self._call_duration: Final = meter.create_histogram(
            conventions.CALL_DURATION,
            "s",
            "Time from a call to its outcome",
            explicit_bucket_boundaries_advisory=conventions.CALL_SECONDS,
        )
        self._gate_duration: Final = meter.create_histogram(
            conventions.GATE_DURATION,
            "s",
            "Time of a call in the gate, the audit row included and the execution left out",
            explicit_bucket_boundaries_advisory=conventions.GATE_SECONDS,
        )

    async def __call__(self, call: ToolCall, proceed: Handler, /) -> Outcome:
        skill = self._skill(call)
        self._active.add(1, skill)
        started = time.perf_counter()
        outcome: Outcome = Failed(Cancelled())
        try:
            outcome = await proceed(call)
        except Exception as error:
            outcome = Failed(Raised("chain", type(error).__name__))
            raise
        finally:
            seconds = time.perf_counter() - started
            self._active.add(-1, skill)
            self._record(call, outcome, skill, seconds)
        return outcome

    def _record(
        self, call: ToolCall, outcome: Outcome, skill: dict[str, str], seconds: float
    ) -> None:
        decision = {**skill, conventions.POLICY_DECISION: conventions.ALLOW}
        result = dict(skill)
        match outcome:
            case Completed():
                result[conventions.OUTCOME] = "completed"
            case Failed(failure):
                result[conventions.OUTCOME] = "failed"
                result[conventions.ERROR_TYPE] = error_kind(failure)
            case Refused(refusal):
                result[conventions.OUTCOME] = "refused"
                decision[conventions.POLICY_DECISION] = conventions.DENY
                decision[conventions.RULE] = (
                    self._names.of(refusal.by)
                    if isinstance(refusal, Withheld)
                    else rule_name(refusal)
                )
                if isinstance(refusal, UnmetPrerequisites):
                    for missing in refusal.missing:
                        self._missed.add(1, {**skill, conventions.PREREQUISITE: missing.skill})
            case _:
                assert_never(outcome)
        self._decisions.add(1, {**decision, conventions.VIA: call.via.value})
        self._call_duration.record(seconds, result)
        executed = min(self._times.take(call), seconds)
        self._gate_duration.record(
            seconds - executed,
            {
                conventions.AGENT: call.scope.agent,
                conventions.POLICY_DECISION: decision[conventions.POLICY_DECISION],
            },
        )

    def _skill(self, call: ToolCall) -> dict[str, str]:
        server = call.tool.server if isinstance(call.tool, ToolRef) else conventions.UNKNOWN
        return {
            conventions.AGENT: call.scope.agent,
            conventions.TOOL_NAME: self._names.of(call.skill),
            conventions.SERVER: server,
        }


def observe_audit_queue(
    depth: Callable[[], int], meter_provider: MeterProvider | None = None
) -> None:
    """Report, at each collection, how many audit rows wait to be committed.

    Args:
        depth: returns their number; called from the thread that collects.
        meter_provider: the global one unless given.
    """

    def observe(_options: CallbackOptions) -> Iterable[Observation]:
        return (Observation(depth()),)

    metrics.get_meter(conventions.SCOPE, meter_provider=meter_provider).create_observable_gauge(
        conventions.AUDIT_QUEUE, [observe], "{row}", "Audit rows that wait to be committed"
    )


def observe_dropped(
    lost: Mapping[str, Callable[[], int]], meter_provider: MeterProvider | None = None
) -> None:
    """Report, at each collection, how much of each signal could not be delivered.

    Args:
        lost: per signal, what returns the number of its lost items since the start; called from
            the thread that collects.
        meter_provider: the global one unless given.
    """

    def observe(_options: CallbackOptions) -> Iterable[Observation]:
        return [
            Observation(items(), {conventions.SIGNAL: signal}) for signal, items in lost.items()
        ]

    metrics.get_meter(conventions.SCOPE, meter_provider=meter_provider).create_observable_counter(
        conventions.TELEMETRY_DROPPED, [observe], "{item}", "Telemetry that was not delivered"
    )
