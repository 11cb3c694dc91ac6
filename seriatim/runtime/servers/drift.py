"""Drift: tools whose definitions change while a run goes on, put on record.

A description is read by models: one that changes after review may carry an injection.
"""

import logging
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

import anyio

from interceptors import (
    AuditRecord,
    AuditSink,
    DecisionId,
    JsonObject,
    Redactor,
    RunId,
    Scope,
    new_id,
    no_trace,
    timestamp,
)
from interceptors.execution import CHANGED
from seriatim.runtime.servers.listing import ToolChange
from seriatim.runtime.servers.news import ToolsListed
from seriatim.topology.models import Agent, Skill
from telemetry import RunSpans, Telemetry, current_trace

EVENT_TYPE: Final = "tool.changed"
WRITING: Final = 10.0
"""Seconds that the audit log may take, as long as for a call."""

_log: Final = logging.getLogger(__name__)


class Drift:
    """Writes a row, and an event of a span, for each skill whose tool changed.

    Args:
        agents: those whose skills count; other tools are nobody's business.
        pin: whether calls of a changed tool are refused, which the rows say.
    """

    def __init__(
        self,
        run: RunId,
        topology: str,
        agents: Sequence[Agent],
        *,
        audit: AuditSink,
        redactor: Redactor,
        spans: RunSpans,
        telemetry: Telemetry,
        pin: bool,
    ) -> None:
        self._run: Final = run
        self._topology: Final = topology
        self._agents: Final = agents
        self._audit: Final = audit
        self._redactor: Final = redactor
        self._spans: Final = spans
        self._telemetry: Final = telemetry
        self._pin: Final = pin

    def granted(self, news: ToolsListed) -> ToolsListed:
        """Return the changes to tools that stand behind a skill of an agent."""
        changes = [change for change in news.changes if any(self._skills(news.server, change.tool))]
        return ToolsListed(news.server, tuple(changes))

    async def record(self, news: ToolsListed) -> None:
        """Put the changes on record; a row that cannot be written is told in the log."""
        for change in news.changes:
            for agent, skill in self._skills(news.server, change.tool):
                await self._record(Scope(self._run, agent.id), skill, change)

    def _skills(self, server: str, tool: str) -> Iterator[tuple[Agent, Skill]]:
        for agent in self._agents:
            for skill in agent.skills:
                if (skill.tool.server, skill.tool.name) == (server, tool):
                    yield agent, skill

    async def _record(self, scope: Scope, skill: Skill, change: ToolChange) -> None:
        decision = DecisionId(new_id())
        what = change.what
        with self._spans.tool_changed(
            scope, skill.id, skill.tool, decision, what, form=self._telemetry.event_form
        ):
            record = self._row(scope, skill, change, decision, what)
        try:
            with anyio.fail_after(WRITING):
                await self._audit.write(record)
        except Exception as error:  # noqa: BLE001  whatever the store's fault, there is no row
            _log.error("a change of a tool could not be recorded: %s", type(error).__name__)

    def _row(
        self, scope: Scope, skill: Skill, change: ToolChange, decision: DecisionId, what: str
    ) -> AuditRecord:
        trace = current_trace if self._telemetry.traces else no_trace
        trace_id, span_id = next(((ids.trace, ids.span) for ids in trace()), (None, None))
        inputs: JsonObject = {"before": dict(change.before), "after": dict(change.after)}
        return AuditRecord(
            event_type=EVENT_TYPE,
            event_id=new_id(),
            decision_id=decision,
            time=timestamp(datetime.now(UTC)),
            run=scope.run,
            topology=self._topology,
            agent=scope.agent,
            skill=skill.id,
            server=skill.tool.server,
            tool=skill.tool.name,
            via="server",
            call_id="",
            policy_decision="deny" if self._pin else "allow",
            rule="permission" if self._pin else None,
            reason=CHANGED if self._pin else None,
            missing=(),
            outcome="refused" if self._pin else "completed",
            error_kind=None,
            duration=0.0,
            inputs=self._redactor.inputs(inputs, skill.redact),
            output=what,
            trace_id=trace_id,
            span_id=span_id,
        )
