"""Permission: a policy says whether this agent may use this tool at all."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol, TypeAlias, assert_never, final

import anyio

from interceptors.calls import NoTool, SkillId, ToolCall, ToolRef
from interceptors.chain import Handler
from interceptors.execution import ServerUnavailableError
from interceptors.outcomes import (
    Failed,
    GateUnavailable,
    Outcome,
    PermissionDenied,
    Refused,
    ServerUnavailable,
)


@final
@dataclass(frozen=True, slots=True)
class Allowed:
    """The policy allows the call."""


@final
@dataclass(frozen=True, slots=True)
class Denied:
    """The policy denies the call, for a reason that is a clause (`server bar is strict`)."""

    reason: str


Verdict: TypeAlias = Allowed | Denied


class Policy(Protocol):
    """Decides about calls; ours is `TierPolicy`, an external engine may stand in its place."""

    async def decide(self, call: ToolCall, /) -> Verdict:
        """Return the verdict. Raises, or takes too long, when it cannot tell.

        Raises:
            ServerUnavailableError: when it hangs on what a server says that is not there: the call
                fails, as it would have if it had gone on.
        """
        ...


class Tier(Enum):
    """How freely a server or a tool may be used."""

    OPEN = "open"
    CAUTIOUS = "cautious"
    READONLY = "readonly"
    STRICT = "strict"


@final
@dataclass(frozen=True, slots=True)
class Permit:
    """What the policy knows of one skill of one agent.

    Attributes:
        subject: whose tier it is, as a text names it (`server bar`, `tool drop of server bar`).
        required_scopes: what the agent must have been given to use the skill.
        reads_only: whether the tool changes nothing, as declared or as the server says.
    """

    tier: Tier
    subject: str
    required_scopes: frozenset[str]
    reads_only: bool


class TierPolicy:
    """Decides by the tier of the tool and the scopes of the agent (DESIGN.md, section 3).

    Args:
        permits: what is known of each skill of the agent; a skill that is absent is denied.
        scopes: the agent's scopes, base and elevated, its archetype's included.
    """

    def __init__(self, permits: Mapping[SkillId, Permit], scopes: frozenset[str]) -> None:
        self._permits: Final = permits
        self._scopes: Final = scopes

    async def decide(self, call: ToolCall, /) -> Verdict:
        match call.tool:
            case ToolRef() as tool if call.skill in self._permits:
                return judge(self._permits[call.skill], tool, self._scopes)
            case ToolRef() | NoTool():
                return Denied("nothing is known of it")
            case _:
                assert_never(call.tool)


def judge(permit: Permit, tool: ToolRef, scopes: frozenset[str]) -> Verdict:
    """Return what the tiers say of a tool for an agent that holds `scopes`."""
    match permit.tier:
        case Tier.OPEN:
            return Allowed()
        case Tier.CAUTIOUS:
            return _within(permit, scopes)
        case Tier.READONLY:
            if not permit.reads_only:
                return Denied(f"{permit.subject} is readonly")
            return _within(permit, scopes)
        case Tier.STRICT:
            if f"mcp:call:{tool.server}:{tool.name}" not in scopes:
                return Denied(f"{permit.subject} is strict")
            return Allowed()
        case _:
            assert_never(permit.tier)


def _within(permit: Permit, scopes: frozenset[str]) -> Verdict:
    lacking = sorted(permit.required_scopes - scopes)
    if not lacking:
        return Allowed()
    return Denied(f"it lacks the scope{'s' if lacking[1:] else ''} {', '.join(lacking)}")


class PermissionInterceptor:
    """Asks the policy, and refuses what it denies and what it cannot decide.

    Args:
        limit: seconds that the policy may take.
        fail_open: let calls pass that the policy could not decide.
    """

    def __init__(self, policy: Policy, *, limit: float = 10.0, fail_open: bool = False) -> None:
        self._policy: Final = policy
        self._limit: Final = limit
        self._fail_open: Final = fail_open

    async def __call__(self, call: ToolCall, proceed: Handler, /) -> Outcome:
        try:
            with anyio.fail_after(self._limit):
                verdict = _checked(await self._policy.decide(call))
        except ServerUnavailableError as error:
            return Failed(ServerUnavailable(error.server, error.detail))
        except Exception:  # noqa: BLE001  whatever the policy's fault, it gave no verdict
            if not self._fail_open:
                return Refused(GateUnavailable("policy engine unavailable"))
            verdict = Allowed()
        match verdict:
            case Allowed():
                return await proceed(call)
            case Denied(reason):
                return Refused(PermissionDenied(reason))
            case _:
                assert_never(verdict)


def _checked(verdict: object) -> Verdict:
    """Return `verdict`, which comes from code that no type checker may have seen."""
    if isinstance(verdict, Allowed | Denied):
        return verdict
    raise TypeError(f"a policy returned {type(verdict).__name__}, which is no verdict")
