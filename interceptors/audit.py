"""Audit: exactly one row a call, committed before the outcome is returned."""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

import anyio

from interceptors.calls import BrokenArguments, JsonObject, SkillId, ToolCall, ToolRef
from interceptors.chain import Handler
from interceptors.ids import new_id
from interceptors.outcomes import (
    Cancelled,
    Completed,
    Failed,
    GateUnavailable,
    Outcome,
    Raised,
    Refused,
    UnmetPrerequisites,
    Unrecorded,
    error_kind,
    rule_name,
)
from interceptors.records import AuditRecord, AuditSink, EventType
from interceptors.redaction import PREVIEW_BYTES, Redactor, cut, storable
from interceptors.texts import clause, text_of

UNAVAILABLE: Final = "audit log unavailable"

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TraceIds:
    """The trace and the span under which a call is recorded, in hexadecimal."""

    trace: str
    span: str


def no_trace() -> tuple[TraceIds, ...]:
    """Return the ids of no trace."""
    return ()


class AuditInterceptor:
    """Writes one row for each call, whatever becomes of it.

    Stands outside the gate, so that no refusal goes unrecorded. Asks the sink first whether it
    could write, so that nothing reaches a server while the log is down.

    Args:
        topology: the topology's name, for the rows.
        hidden: per skill, further names whose values are not shown.
        current_trace: returns the ids of the current span, or nothing.
        event_type: what the rows tell of.
        limit: seconds that the sink may take.
        fail_open: let calls pass unrecorded while the sink is down.
    """

    def __init__(
        self,
        sink: AuditSink,
        topology: str,
        redactor: Redactor,
        *,
        hidden: Mapping[SkillId, Collection[str]],
        current_trace: Callable[[], tuple[TraceIds, ...]] = no_trace,
        event_type: EventType = "skill.executed",
        limit: float = 10.0,
        fail_open: bool = False,
    ) -> None:
        self._sink: Final = sink
        self._topology: Final = topology
        self._redactor: Final = redactor
        self._hidden: Final = hidden
        self._current_trace: Final = current_trace
        self._event_type: Final = event_type
        self._limit: Final = limit
        self._fail_open: Final = fail_open

    async def __call__(self, call: ToolCall, proceed: Handler, /) -> Outcome:
        started = time.perf_counter()
        outcome: Outcome = Failed(Cancelled())
        try:
            outcome = await self._when_ready(call, proceed)
        except Exception as error:  # noqa: BLE001  a fault of the gate; the call has an outcome
            outcome = Failed(Raised("the gate", type(error).__name__))
        finally:
            record = self._record(call, outcome, time.perf_counter() - started)
            # Shielded: the row of a cancelled call is written all the same.
            with anyio.CancelScope(shield=True):
                written = await self._write(record)
        if written or self._fail_open:
            return outcome
        if isinstance(outcome, Refused):
            return Refused(GateUnavailable(UNAVAILABLE))
        return Failed(Unrecorded(UNAVAILABLE))

    async def _when_ready(self, call: ToolCall, proceed: Handler) -> Outcome:
        try:
            with anyio.fail_after(self._limit):
                await self._sink.ready()
        except Exception as error:  # noqa: BLE001  any fault of the sink means that it is not ready
            _log.error("the audit log is not available: %s", clause(error, self._redactor.text))
            if not self._fail_open:
                return Refused(GateUnavailable(UNAVAILABLE))
        return await proceed(call)

    async def _write(self, record: AuditRecord) -> bool:
        try:
            with anyio.fail_after(self._limit):
                await self._sink.write(record)
        except Exception as error:  # noqa: BLE001  whatever went wrong, there is no row
            _log.error(
                "call %s has no row in the audit log: %s",
                record.decision_id,
                clause(error, self._redactor.text),
            )
            return False
        return True

    def _record(self, call: ToolCall, outcome: Outcome, duration: float) -> AuditRecord:
        hidden = self._hidden.get(call.skill, ())
        trace, span = next(((ids.trace, ids.span) for ids in self._current_trace()), (None, None))
        server, tool = (
            (call.tool.server, call.tool.name) if isinstance(call.tool, ToolRef) else (None, None)
        )
        refusal = outcome.refusal if isinstance(outcome, Refused) else None
        text = text_of(call.skill, outcome)
        return AuditRecord(
            event_type=self._event_type,
            event_id=new_id(),
            decision_id=call.decision,
            time=timestamp(call.issued),
            run=call.scope.run,
            topology=self._topology,
            agent=call.scope.agent,
            skill=cut(self._redactor.plain(call.skill), PREVIEW_BYTES),
            server=server,
            tool=tool,
            via=call.via.value,
            call_id=cut(storable(call.id), PREVIEW_BYTES),
            policy_decision="allow" if refusal is None else "deny",
            rule=None if refusal is None else rule_name(refusal),
            reason=None if refusal is None else self._redactor.plain(text),
            missing=tuple(missing.skill for missing in refusal.missing)
            if isinstance(refusal, UnmetPrerequisites)
            else (),
            outcome=_OUTCOMES[type(outcome)],
            error_kind=error_kind(outcome.failure) if isinstance(outcome, Failed) else None,
            duration=duration,
            inputs=self._inputs(call, hidden),
            output=self._redactor.preview(text, hidden) if refusal is None else None,
            trace_id=trace,
            span_id=span,
        )

    def _inputs(self, call: ToolCall, hidden: Collection[str]) -> JsonObject:
        match call.arguments:
            case BrokenArguments(text, _):
                return {"broken": self._redactor.preview(text, hidden)}
            case arguments:
                return self._redactor.inputs(arguments, hidden)


def timestamp(moment: datetime) -> str:
    """Return a UTC moment as RFC 3339 with six decimals and a `Z`."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


_OUTCOMES: Final[Mapping[type[Outcome], Literal["completed", "refused", "failed"]]] = {
    Completed: "completed",
    Refused: "refused",
    Failed: "failed",
}
