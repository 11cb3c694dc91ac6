"""The words that an agent reads when it does not get its result, made from data in one place.

The refusal's text is the mechanism: it names what to do, in the names under which this agent sees
its tools. The first two forms of `UnmetPrerequisites` are fixed to the byte (DESIGN.md, section 2).
"""

import json
from collections.abc import Callable, Sequence
from typing import Final, assert_never

from interceptors.calls import SkillId, SkillState
from interceptors.outcomes import (
    Cancelled,
    Completed,
    Failed,
    Failure,
    GateUnavailable,
    InputRequired,
    InvalidArguments,
    LimitReached,
    NotGranted,
    Outcome,
    PermissionDenied,
    ProtocolError,
    Raised,
    Refusal,
    Refused,
    ServerUnavailable,
    TimedOut,
    ToolError,
    ToolResult,
    UnmetPrerequisites,
    Unrecorded,
    Withheld,
)

LONGEST_NAME: Final = 200
"""Characters of a name that somebody sent which are repeated in a text."""


def text_of(skill: str, outcome: Outcome) -> str:
    """Return the text of an outcome: what the tool wrote, or what the agent is told instead."""
    match outcome:
        case Completed(result):
            return _shown(result)
        case Refused(refusal):
            return refusal_text(skill, refusal)
        case Failed(failure):
            return failure_text(skill, failure)
        case _:
            assert_never(outcome)


def refusal_text(skill: str, refusal: Refusal) -> str:
    """Return what the agent is told when its call of `skill` is refused."""
    name = printable(skill)
    match refusal:
        case UnmetPrerequisites():
            return f"{name} requires {_missing(name, refusal)}. {_remedy(refusal)}, then retry."
        case PermissionDenied(reason):
            return f"{name} is not permitted for this agent ({reason}). Do not retry; report it."
        case NotGranted(()):
            return f"{name} is not one of your tools. You have no tools."
        case NotGranted(granted):
            return f"{name} is not one of your tools. Your tools are {', '.join(granted)}."
        case LimitReached(limit):
            return f"{name} was not run: this run has used its {limit} calls. Finish without tools."
        case GateUnavailable(reason):
            return f"{name} was not run: the gate could not decide ({reason}). Tell the operator."
        case Withheld(_, reason):
            return reason
        case _:
            assert_never(refusal)


def failure_text(skill: str, failure: Failure) -> str:
    """Return what the agent is told when its call of `skill` failed without a result to show."""
    match failure:
        case ToolError(result):
            return _shown(result)
        case ProtocolError(code, message):
            return f"{skill} failed: {message} (code {code})."
        case InputRequired():
            return f"{skill} was not run: it asks for input first, which only a client can give."
        case TimedOut(seconds):
            return f"{skill} failed: it did not answer within {seconds:g} seconds."
        case ServerUnavailable(server, detail):
            return f"{skill} failed: server {server} is not available ({detail})."
        case InvalidArguments(problem):
            return f"{skill} was not run: its arguments are no JSON object ({problem})."
        case Cancelled():
            return f"{skill} was cancelled."
        case Raised(by, detail):
            return f"{skill} failed in {by}: {detail}."
        case Unrecorded(detail):
            return f"{skill} may have run, but that is not on record ({detail}). Tell the operator."
        case _:
            assert_never(failure)


def printable(text: str) -> str:
    """Return `text` on one line, bounded, each character that does not print as an escape."""
    shown = text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}…"
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)


def clause(error: BaseException, redact: Callable[[str], str] = str) -> str:
    """Return an exception as a clause of one line: its type, and the beginning of its message.

    Args:
        redact: takes secrets out of the message, before it is cut: half of one is not found.
    """
    try:
        message = printable(redact(str(error)))
    except Exception:  # noqa: BLE001  an exception of a user's may not even have a text
        message = ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _shown(result: ToolResult) -> str:
    """Return the text blocks of a result, one a line; for one without text, its structure."""
    texts = [block.get("text") for block in result.content if block.get("type") == "text"]
    if texts:
        return "\n".join(text for text in texts if isinstance(text, str))
    if "structuredContent" in result.fields:
        return json.dumps(result.fields["structuredContent"], ensure_ascii=False)
    return ", ".join(f"[{block.get('type')}]" for block in result.content)


def _missing(name: str, refusal: UnmetPrerequisites) -> str:
    by_state = {
        state: [missing.skill for missing in refusal.missing if missing.state is state]
        for state in (SkillState.NOT_CALLED, SkillState.UNSUCCESSFUL, SkillState.RUNNING)
    }
    clauses = [_clause(name, state, skills) for state, skills in by_state.items() if skills]
    if len(clauses) > 1:
        return f"{', and '.join(clauses)}, in this session"
    # "When c was called" already says when; "in this session" would say it twice.
    return clauses[0] if by_state[SkillState.RUNNING] else f"{clauses[0]} in this session"


def _clause(name: str, state: SkillState, skills: Sequence[SkillId]) -> str:
    one = len(skills) == 1
    match state:
        case SkillState.NOT_CALLED:
            fate = "has not been called" if one else "have not been called"
        case SkillState.UNSUCCESSFUL:
            fate = f"{'was' if one else 'were'} called but did not succeed"
        case _:
            fate = (
                f"was called but whose result had not been returned when {name} was called"
                if one
                else f"were called but whose results had not been returned when {name} was called"
            )
    return f"{', '.join(skills)}, which {fate}"


def _remedy(refusal: UnmetPrerequisites) -> str:
    steps = []
    if refusal.awaited:
        results = "result" if len(refusal.awaited) == 1 else "results"
        steps.append(f"read the {results} of {', '.join(refusal.awaited)}")
    if refusal.remedy:
        again = all(missing.state is SkillState.UNSUCCESSFUL for missing in refusal.missing)
        layers = ", then ".join(", ".join(layer) for layer in refusal.remedy)
        steps.append(f"call {layers} {'again' if again else 'first'}")
    sentence = ", then ".join(steps)
    return sentence[:1].upper() + sentence[1:]
