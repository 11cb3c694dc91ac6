"""Audit records for tests of what stores and prints them."""

from dataclasses import replace
from typing import Any, Final

from interceptors import AuditRecord, new_id

COMPLETED: Final = AuditRecord(
    event_type="skill.executed",
    event_id="0199a1b2-0000-7000-8000-000000000001",
    decision_id="0199a1b2-0000-7000-8000-0000000000aa",
    time="2026-05-09T07:35:25.123456Z",
    run="run-1",
    topology="solution-review",
    agent="planner",
    skill="list-build-conventions",
    server="warehouse",
    tool="list_build_conventions",
    via="model",
    call_id="call-1",
    policy_decision="allow",
    rule=None,
    reason=None,
    missing=(),
    outcome="completed",
    error_kind=None,
    duration=0.0125,
    inputs={"limit": 3},
    output="naming, layout",
    trace_id="0af7651916cd43dd8448eb211c80319c",
    span_id="b7ad6b7169203331",
)

REFUSED: Final = replace(
    COMPLETED,
    event_id="0199a1b2-0000-7000-8000-000000000002",
    skill="get-build-convention",
    tool="get_build_convention",
    policy_decision="deny",
    rule="requires",
    reason=(
        "get-build-convention requires list-build-conventions, which has not been called in this "
        "session. Call list-build-conventions first, then retry."
    ),
    missing=("list-build-conventions",),
    outcome="refused",
    duration=0.0001,
    output=None,
)

FAILED: Final = replace(
    COMPLETED,
    event_id="0199a1b2-0000-7000-8000-000000000003",
    outcome="failed",
    error_kind="timeout",
    duration=60.0,
    output="list-build-conventions failed: it did not answer within 60 seconds.",
)


def fresh(like: AuditRecord = COMPLETED, **changes: Any) -> AuditRecord:
    """Return a record with an id of its own."""
    return replace(like, **{"event_id": new_id(), **changes})
