"""The relay: requests that the gateway answers in the wire's JSON, past the SDK's models.

The SDK would drop what its models do not know from every result, and would turn malformed calls
away before anybody could put them on record. A middleware of its server comes before both.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias, final

import mcp_types
from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.requests import Request as HttpRequest

from seriatim.runtime.render import WireResult

Inbound: TypeAlias = ServerRequestContext[dict[str, Any], HttpRequest]
"""What the SDK knows of one request."""

Answer: TypeAlias = Callable[[Inbound], Awaitable[WireResult]]
"""Answers one request; may raise `MCPError`."""

Introduce: TypeAlias = Callable[[Inbound, WireResult], WireResult]
"""Changes what a server says of itself to one client."""

INTRODUCTIONS: Final = frozenset({"initialize", "server/discover"})
"""The requests with which a client begins."""

_log: Final = logging.getLogger(__name__)


@final
class Relay:
    """A middleware of the SDK's server that answers some methods itself.

    Args:
        answers: method -> what answers it; the SDK answers all others.
        introduce: changes what the SDK says of this server when a client begins.
        stamp: names this server, in the results of the newest protocol.
    """

    def __init__(
        self, answers: Mapping[str, Answer], introduce: Introduce, stamp: Mapping[str, Any]
    ) -> None:
        self._answers: Final = answers
        self._introduce: Final = introduce
        self._stamp: Final = stamp

    async def __call__(self, ctx: Inbound, call_next: CallNext) -> HandlerResult:
        if ctx.method in INTRODUCTIONS:
            result = await call_next(ctx)
            return self._introduce(ctx, result) if isinstance(result, dict) else result
        answer = self._answers.get(ctx.method)
        if answer is None or not _has_begun(ctx):
            return await call_next(ctx)
        return self._envelope(ctx, await _guarded(answer, ctx))

    def _envelope(self, inbound: Inbound, result: WireResult) -> WireResult:
        """Return a result with what the client's protocol wants of every result."""
        if inbound.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return result
        meta = {**(result.get("_meta") or {}), mcp_types.SERVER_INFO_META_KEY: dict(self._stamp)}
        return {"resultType": "complete", **result, "_meta": meta}


async def unreached(_inbound: Inbound, _params: Any) -> Any:
    """Stand for a method that the relay answers: what has a handler is advertised."""
    raise MCPError(mcp_types.INVALID_REQUEST, "the connection was not initialized")


def _has_begun(inbound: Inbound) -> bool:
    """Return whether requests may be made; the SDK turns away those that come too early."""
    modern = inbound.protocol_version in MODERN_PROTOCOL_VERSIONS
    return modern or inbound.session.client_params is not None


async def _guarded(answer: Answer, inbound: Inbound) -> WireResult:
    """Answer, without the text of an exception: the SDK would send it in the handshake era."""
    try:
        return await answer(inbound)
    except (MCPError, ValidationError):
        # The SDK says of the latter that the parameters are invalid, and no more.
        raise
    except Exception as error:
        _log.error("the gateway could not answer `%s`: %s", inbound.method, type(error).__name__)
        raise MCPError(mcp_types.INTERNAL_ERROR, "internal error of the gateway") from error
