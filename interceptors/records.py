"""What is written of a call, and where it goes."""

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from interceptors.calls import JsonObject

EventType: TypeAlias = Literal["skill.executed", "agent.delegated", "tool.changed"]
"""What a row tells of: a call of a skill, a task handed to a child, a tool that changed."""


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One row of the audit log; the fields are those of DESIGN.md, section 4, in its order.

    `time` is RFC 3339 in UTC with six decimals; `duration` is in seconds.
    """

    event_type: EventType
    event_id: str
    decision_id: str
    time: str
    run: str
    topology: str
    agent: str
    skill: str
    server: str | None
    tool: str | None
    via: str
    call_id: str
    policy_decision: Literal["allow", "deny"]
    rule: str | None
    reason: str | None
    missing: tuple[str, ...]
    outcome: Literal["completed", "refused", "failed"]
    error_kind: str | None
    duration: float
    inputs: JsonObject
    output: str | None
    trace_id: str | None
    span_id: str | None


class AuditSink(Protocol):
    """Where rows go. A method that cannot do its work raises."""

    async def ready(self) -> None:
        """Return when a row could be written now."""
        ...

    async def write(self, record: AuditRecord) -> None:
        """Return when the row is committed."""
        ...

    def waiting(self) -> int:
        """Return how many rows and questions wait for the store; may be called in any thread."""
        ...


class MemoryAuditSink:
    """Keeps the rows in a list, for tests and for embedding."""

    def __init__(self) -> None:
        self.records: list[AuditRecord] = []

    async def ready(self) -> None:
        """Return at once."""

    async def write(self, record: AuditRecord) -> None:
        self.records.append(record)

    def waiting(self) -> int:
        return 0
