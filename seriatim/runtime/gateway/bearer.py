"""Bearer tokens: who a request is from, and what it is told when that cannot be said."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, final

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from seriatim.runtime.gateway.register import Entry, Past, Register

REALM: Final = "seriatim"
"""What a token opens, as a challenge names it."""


@final
@dataclass(frozen=True, slots=True)
class TurnedAway:
    """A request is not served.

    Attributes:
        error: the error code of RFC 6750, or `""` when no token was sent.
        why: a sentence for whoever reads the client's message; no secret, nothing of the token.
    """

    status: Literal[401, 403, 503]
    error: str
    why: str


Verify: TypeAlias = Callable[[str], Awaitable[Entry | TurnedAway]]
"""Says whose token this is."""

NO_TOKEN: Final = TurnedAway(401, "", "send the agent's token: `Authorization: Bearer TOKEN`")
UNKNOWN: Final = "the token is unknown; ask whoever runs this gateway for one"


def invalid(why: str) -> TurnedAway:
    """Return what is said of a token that opens nothing."""
    return TurnedAway(401, "invalid_token", why)


def token_of(scope: Scope) -> str:
    """Return the bearer token of a request, or `""`."""
    kind, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def verify_by(register: Register) -> Verify:
    """Return a check for the tokens that a register has given out."""

    async def verify(token: str) -> Entry | TurnedAway:
        match register.find(token):
            case Entry() as entry:
                return entry
            case Past(fate):
                return invalid(fate)
            case _:
                return invalid(UNKNOWN)

    return verify


def challenge(away: TurnedAway, metadata: str) -> Response:
    """Return the answer to a request that is not served, as RFC 6750 and MCP have it.

    Args:
        metadata: where the protected-resource metadata is, or `""` without an authorization server.
    """
    error = away.error or ("unavailable" if away.status == 503 else "unauthorized")
    parts = [f'realm="{REALM}"']
    if away.error:
        parts += [f'error="{away.error}"', f'error_description="{_quotable(away.why)}"']
    if metadata:
        parts.append(f'resource_metadata="{metadata}"')
    headers = {}
    if away.status != 503:
        headers["www-authenticate"] = f"Bearer {', '.join(parts)}"
    body = json.dumps({"error": error, "error_description": away.why})
    return Response(body, away.status, headers, media_type="application/json")


def _quotable(text: str) -> str:
    """Return a text as RFC 6750 lets it stand between quotation marks."""
    return "".join(c if " " <= c <= "~" and c not in '"\\' else "?" for c in text)
