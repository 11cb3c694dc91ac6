import pytest
from hypothesis import given
from hypothesis import strategies as st

from interceptors import (
    Cancelled,
    Completed,
    Failed,
    Failure,
    GateUnavailable,
    InvalidArguments,
    LimitReached,
    NotGranted,
    PermissionDenied,
    ProtocolError,
    Raised,
    Refusal,
    Refused,
    Rules,
    ServerUnavailable,
    SkillId,
    SkillState,
    TimedOut,
    ToolError,
    ToolResult,
    Unrecorded,
    Withheld,
    failure_text,
    printable,
    refusal_text,
    text_of,
)
from interceptors.texts import clause
from tests.support.calls import requires, standing

DONE, FAILED, RUNNING = SkillState.COMPLETED, SkillState.UNSUCCESSFUL, SkillState.RUNNING
CHAIN = {
    "get-build-convention": ["list-build-conventions"],
    "search-solution-code": ["get-build-convention"],
}


def told(rules: dict[str, list[str]], skill: str, **states: SkillState) -> str:
    """Return what the agent reads when it calls `skill` in this standing."""
    (unmet,) = Rules(requires(rules)).unmet(SkillId(skill), standing(**states))
    return refusal_text(skill, unmet)


def test_one_missing() -> None:
    assert told(CHAIN, "get-build-convention") == (
        "get-build-convention requires list-build-conventions, which has not been called in this "
        "session. Call list-build-conventions first, then retry."
    )


def test_several_missing() -> None:
    assert told({"c": ["a", "b"]}, "c") == (
        "c requires a, b, which have not been called in this session. Call a, b first, then retry."
    )


def test_missing_and_itself_guarded() -> None:
    assert told(CHAIN, "search-solution-code") == (
        "search-solution-code requires get-build-convention, which has not been called in this "
        "session. Call list-build-conventions, then get-build-convention first, then retry."
    )


def test_a_layer_of_peers_after_another_layer() -> None:
    rules = {"c": ["a", "b"], "a": ["z"], "b": ["z"]}
    assert told(rules, "c").endswith("Call z, then a, b first, then retry.")


def test_called_and_unsuccessful() -> None:
    assert told({"c": ["a"]}, "c", a=FAILED) == (
        "c requires a, which was called but did not succeed in this session. "
        "Call a again, then retry."
    )


def test_several_called_and_unsuccessful() -> None:
    assert told({"c": ["a", "b"]}, "c", a=FAILED, b=FAILED) == (
        "c requires a, b, which were called but did not succeed in this session. "
        "Call a, b again, then retry."
    )


def test_called_and_not_returned() -> None:
    assert told({"c": ["a"]}, "c", a=RUNNING) == (
        "c requires a, which was called but whose result had not been returned when c was called. "
        "Read the result of a, then retry."
    )


def test_several_called_and_not_returned() -> None:
    assert told({"c": ["a", "b"]}, "c", a=RUNNING, b=RUNNING) == (
        "c requires a, b, which were called but whose results had not been returned when c was "
        "called. Read the results of a, b, then retry."
    )


def test_mixed_not_called_and_unsuccessful() -> None:
    assert told({"c": ["a", "b"]}, "c", b=FAILED) == (
        "c requires a, which has not been called, and b, which was called but did not succeed, "
        "in this session. Call a, b first, then retry."
    )


def test_mixed_not_called_and_awaited() -> None:
    assert told({"c": ["a", "b"]}, "c", b=RUNNING) == (
        "c requires a, which has not been called, and b, which was called but whose result had "
        "not been returned when c was called, in this session. "
        "Read the result of b, then call a first, then retry."
    )


def test_mixed_clauses_stand_in_the_order_of_the_states_and_not_of_the_rule() -> None:
    assert told({"x": ["a", "b", "c", "d"]}, "x", a=RUNNING, b=FAILED, d=FAILED) == (
        "x requires c, which has not been called, and b, d, which were called but did not succeed, "
        "and a, which was called but whose result had not been returned when x was called, "
        "in this session. Read the result of a, then call b, c, d first, then retry."
    )


def test_what_is_satisfied_is_left_out() -> None:
    assert told({"c": ["a", "b"]}, "c", a=DONE) == (
        "c requires b, which has not been called in this session. Call b first, then retry."
    )


def test_of_a_whole_order_issued_in_one_turn_the_nearest_step_is_to_be_read() -> None:
    seen = {"list-build-conventions": RUNNING, "get-build-convention": RUNNING}
    assert told(CHAIN, "search-solution-code", **seen) == (
        "search-solution-code requires get-build-convention, which was called but whose result had "
        "not been returned when search-solution-code was called. Read the result of "
        "get-build-convention, then retry."
    )


@pytest.mark.parametrize(
    ("refusal", "text"),
    [
        (
            NotGranted((SkillId("a"), SkillId("b"))),
            "x is not one of your tools. Your tools are a, b.",
        ),
        (NotGranted(()), "x is not one of your tools. You have no tools."),
        (
            PermissionDenied("server bar is strict"),
            "x is not permitted for this agent (server bar is strict). Do not retry; report it.",
        ),
        (
            GateUnavailable("ledger unavailable"),
            "x was not run: the gate could not decide (ledger unavailable). Tell the operator.",
        ),
        (
            LimitReached(200),
            "x was not run: this run has used its 200 calls. Finish without tools.",
        ),
        (Withheld("hours", "The office is closed. Try at 9."), "The office is closed. Try at 9."),
    ],
)
def test_other_refusals(refusal: Refusal, text: str) -> None:
    assert refusal_text("x", refusal) == text
    assert text_of("x", Refused(refusal)) == text


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (ProtocolError(-32602, "bad params"), "x failed: bad params (code -32602)."),
        (TimedOut(2.5), "x failed: it did not answer within 2.5 seconds."),
        (TimedOut(60), "x failed: it did not answer within 60 seconds."),
        (
            ServerUnavailable("bar", "it exited with 1"),
            "x failed: server bar is not available (it exited with 1).",
        ),
        (
            InvalidArguments("they are not valid JSON"),
            "x was not run: its arguments are no JSON object (they are not valid JSON).",
        ),
        (Cancelled(), "x was cancelled."),
        (
            Raised("execution", "ValueError: no"),
            "x failed in execution: ValueError: no.",
        ),
        (
            Unrecorded("audit log unavailable"),
            "x may have run, but that is not on record (audit log unavailable). Tell the operator.",
        ),
        (ToolError(ToolResult(({"type": "text", "text": "no such file"},))), "no such file"),
    ],
)
def test_failures(failure: Failure, text: str) -> None:
    assert failure_text("x", failure) == text
    assert text_of("x", Failed(failure)) == text


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (ToolResult(({"type": "text", "text": "a"}, {"type": "text", "text": "b"})), "a\nb"),
        (ToolResult((), {"structuredContent": {"a": "é"}}), '{"a": "é"}'),
        (
            ToolResult(({"type": "image", "data": "QUJD"}, {"type": "audio", "data": "QUJD"})),
            "[image], [audio]",
        ),
        (ToolResult(), ""),
    ],
)
def test_a_result_is_shown_by_its_texts_else_its_structure_else_its_kinds(
    result: ToolResult, text: str
) -> None:
    assert text_of("x", Completed(result)) == text


def test_a_hostile_name_stays_on_one_line_and_shows_what_does_not_print() -> None:
    name = "x\n\x1b[31mred\u2028\u202e\x85\x00\ud800"
    text = refusal_text(name, NotGranted(()))
    assert text == (
        r"x\n\x1b[31mred\u2028\u202e\x85\x00\ud800 is not one of your tools. You have no tools."
    )


def test_a_huge_name_is_bounded() -> None:
    assert len(refusal_text("x" * 100_000, NotGranted(()))) < 300


@given(st.text(st.characters(codec=None)))
def test_printable_prints_on_one_line(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert len(shown.splitlines()) <= 1
    shown.encode()  # whatever the text held, any store and any stream takes it


def test_printable_leaves_what_prints_alone() -> None:
    assert printable("naïve 日本 🎉") == "naïve 日本 🎉"


def test_an_exception_without_a_message_is_its_type() -> None:
    assert clause(ValueError()) == "ValueError"
    assert clause(ValueError("two\nlines")) == r"ValueError: two\nlines"


def test_an_exception_whose_message_raises_is_its_type() -> None:
    class BrokenError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert clause(BrokenError()) == "BrokenError"
