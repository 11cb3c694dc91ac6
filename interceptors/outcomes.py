"""What became of a call: a closed union of three, each carrying data and no prose.

The words that an agent reads are made from this data in `interceptors.texts`.
"""

from dataclasses import dataclass, field
from typing import Final, TypeAlias, assert_never, final

from interceptors.calls import JsonObject, JsonValue, SkillId, SkillState


@final
@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result that a tool gave, in the wire's JSON form.

    Attributes:
        content: the MCP content blocks, as the server sent them.
        fields: every other field that the server sent (`structuredContent`, `_meta`, ...), except
            an `isError` that is true: that is what the outcome's type says.
    """

    content: tuple[JsonObject, ...] = ()
    fields: JsonObject = field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True)
class Completed:
    """The tool ran and did not flag its result as an error."""

    result: ToolResult


# What can go wrong once the gate has let a call pass.


@final
@dataclass(frozen=True, slots=True)
class ToolError:
    """The tool ran and flagged its result as an error."""

    result: ToolResult


@final
@dataclass(frozen=True, slots=True)
class ProtocolError:
    """The server answered with a JSON-RPC error.

    Attributes:
        data: the error's `data` in a tuple of one, or an empty tuple when it had none.
    """

    code: int
    message: str
    data: tuple[JsonValue, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class InputRequired:
    """The tool asks for input before it does its work: it has done nothing that counts.

    Attributes:
        question: the answer in the wire's JSON form; the call is made again with what it asks for.
    """

    question: JsonObject


@final
@dataclass(frozen=True, slots=True)
class TimedOut:
    """The tool did not answer within its time limit."""

    seconds: float


@final
@dataclass(frozen=True, slots=True)
class ServerUnavailable:
    """The server is not there: it did not start, it died, or it speaks no MCP."""

    server: str
    detail: str


@final
@dataclass(frozen=True, slots=True)
class InvalidArguments:
    """The arguments were no JSON object; nothing was sent to the server."""

    problem: str


@final
@dataclass(frozen=True, slots=True)
class Cancelled:
    """The call was given up. Whoever gave it up is not there to read it; the record is."""


@final
@dataclass(frozen=True, slots=True)
class Raised:
    """Code on the way raised an exception after the call had gone on.

    Attributes:
        by: who raised it (`execution`, or a user interceptor's name).
        detail: the exception as one line.
    """

    by: str
    detail: str


@final
@dataclass(frozen=True, slots=True)
class Unrecorded:
    """The call ran, but could not be recorded, and so its result is not returned."""

    detail: str


Failure: TypeAlias = (
    ToolError
    | ProtocolError
    | InputRequired
    | TimedOut
    | ServerUnavailable
    | InvalidArguments
    | Cancelled
    | Raised
    | Unrecorded
)


@final
@dataclass(frozen=True, slots=True)
class Failed:
    """The gate let the call pass and it did not complete."""

    failure: Failure


# Why the gate may refuse a call.


@final
@dataclass(frozen=True, slots=True)
class Missing:
    """A direct prerequisite that is unmet, and how far it got."""

    skill: SkillId
    state: SkillState


@final
@dataclass(frozen=True, slots=True)
class UnmetPrerequisites:
    """Prerequisites of the skill have not been seen to succeed in this scope.

    Attributes:
        missing: the direct prerequisites that are unmet, in the order of the rule; never empty.
        awaited: steps of the way to the skill that are under way, whose result is to be read.
        remedy: the steps to call, in layers; the skills of one layer are peers, and each layer must
            have succeeded before the next is called.
    """

    missing: tuple[Missing, ...]
    awaited: tuple[SkillId, ...]
    remedy: tuple[tuple[SkillId, ...], ...]


@final
@dataclass(frozen=True, slots=True)
class PermissionDenied:
    """The policy denies the call.

    Attributes:
        reason: a clause (`server bar is strict`).
    """

    reason: str


@final
@dataclass(frozen=True, slots=True)
class NotGranted:
    """The agent was granted no skill of that name.

    Attributes:
        granted: the names of the agent's tools, in the order in which it sees them.
    """

    granted: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class LimitReached:
    """The run has used all the calls that it may make."""

    limit: int


@final
@dataclass(frozen=True, slots=True)
class GateUnavailable:
    """The gate could not decide, and so it refuses.

    Attributes:
        reason: a clause that tells an operator what is wrong (`ledger unavailable`).
    """

    reason: str


@final
@dataclass(frozen=True, slots=True)
class Withheld:
    """A user's interceptor refuses the call.

    Attributes:
        by: the interceptor's name; it stands in the audit row's `rule`.
        reason: what the agent is told, as a sentence or two.
    """

    by: str
    reason: str


Refusal: TypeAlias = (
    UnmetPrerequisites | PermissionDenied | NotGranted | LimitReached | GateUnavailable | Withheld
)


@final
@dataclass(frozen=True, slots=True)
class Refused:
    """The gate did not let the call pass; nothing reached the server."""

    refusal: Refusal


Outcome: TypeAlias = Completed | Refused | Failed


RULES: Final = ("requires", "permission", "grant", "limit", "gate")
"""The names of the gate's own rules; no user interceptor bears one."""


def rule_name(refusal: Refusal) -> str:
    """Return the name of the rule by which a call was refused, as rows and spans carry it."""
    match refusal:
        case UnmetPrerequisites():
            return "requires"
        case PermissionDenied():
            return "permission"
        case NotGranted():
            return "grant"
        case LimitReached():
            return "limit"
        case GateUnavailable():
            return "gate"
        case Withheld(by, _):
            return by
        case _:
            assert_never(refusal)


def error_kind(failure: Failure) -> str:
    """Return the kind of a failure, as rows and spans carry it."""
    match failure:
        case ToolError():
            return "tool_error"
        case ProtocolError():
            return "protocol_error"
        case InputRequired():
            return "input_required"
        case TimedOut():
            return "timeout"
        case ServerUnavailable():
            return "server_unavailable"
        case InvalidArguments():
            return "invalid_arguments"
        case Cancelled():
            return "cancelled"
        case Raised():
            return "raised"
        case Unrecorded():
            return "unrecorded"
        case _:
            assert_never(failure)
