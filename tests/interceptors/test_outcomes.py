from typing import get_args

import pytest

from interceptors import (
    Cancelled,
    Completed,
    Failure,
    GateUnavailable,
    InputRequired,
    InvalidArguments,
    LimitReached,
    Missing,
    NotGranted,
    PermissionDenied,
    ProtocolError,
    Raised,
    Refusal,
    ServerUnavailable,
    SkillId,
    SkillState,
    TimedOut,
    ToolError,
    ToolResult,
    UnmetPrerequisites,
    Unrecorded,
    Withheld,
    error_kind,
    refusal_text,
    rule_name,
    text_of,
)

UNMET = UnmetPrerequisites((Missing(SkillId("a"), SkillState.NOT_CALLED),), (), ((SkillId("a"),),))
REFUSALS: dict[str, Refusal] = {
    "requires": UNMET,
    "permission": PermissionDenied("server bar is strict"),
    "grant": NotGranted(()),
    "limit": LimitReached(200),
    "gate": GateUnavailable("ledger unavailable"),
    "hours": Withheld("hours", "Closed."),
}
FAILURES: dict[str, Failure] = {
    "tool_error": ToolError(ToolResult()),
    "protocol_error": ProtocolError(-32602, "bad"),
    "input_required": InputRequired({"requestState": "s1"}),
    "timeout": TimedOut(1),
    "server_unavailable": ServerUnavailable("bar", "gone"),
    "invalid_arguments": InvalidArguments("they are a list"),
    "cancelled": Cancelled(),
    "raised": Raised("execution", "ValueError"),
    "unrecorded": Unrecorded("audit log unavailable"),
}


@pytest.mark.parametrize("rule", REFUSALS)
def test_each_refusal_has_its_rule(rule: str) -> None:
    assert rule_name(REFUSALS[rule]) == rule


@pytest.mark.parametrize("kind", FAILURES)
def test_each_failure_has_its_kind(kind: str) -> None:
    assert error_kind(FAILURES[kind]) == kind


def test_no_kind_of_refusal_or_failure_is_left_out_here() -> None:
    assert {type(refusal) for refusal in REFUSALS.values()} == set(get_args(Refusal))
    assert {type(failure) for failure in FAILURES.values()} == set(get_args(Failure))


def test_a_tool_that_returns_the_text_of_a_refusal_has_completed() -> None:
    forged = Completed(ToolResult(({"type": "text", "text": refusal_text("c", UNMET)},)))
    assert text_of("c", forged) == refusal_text("c", UNMET)
    assert isinstance(forged, Completed)


def test_outcomes_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Completed(ToolResult()).result = ToolResult()  # type: ignore[misc]  # the point of the test
