"""One `tools/call` in the wire's JSON: what the SDK's models do not know is not lost."""

import json
from typing import Any, Final

from mcp import ClientSession, MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    SERVER_INFO_META_KEY,
    CallToolRequest,
    CallToolRequestParams,
)
from pydantic import RootModel, ValidationError

from interceptors import (
    Completed,
    Failed,
    JsonObject,
    Progress,
    ServerProtocolError,
    ToolError,
    ToolResult,
    no_progress,
)
from seriatim.runtime.endpoint import UNREACHED

RESERVED: Final = "io.modelcontextprotocol/"
"""Beginning of the `_meta` keys that speak of the connection between two parties."""
CONNECTION_KEYS: Final = frozenset({"progressToken", "traceparent", "tracestate", "baggage"})
"""Further `_meta` keys that each connection has for itself; the SDK writes them anew."""

_LOST: Final = ("Connection closed", "SSE stream ")
"""How the SDK's own errors begin that say that no answer will come."""


class _Answer(RootModel[dict[str, Any]]):
    """A result as it came."""


async def send_call(
    session: ClientSession,
    tool: str,
    arguments: JsonObject,
    meta: JsonObject,
    receive_progress: Progress,
) -> Completed | Failed:
    """Send one `tools/call` and return its result; judges no output schema: that is the caller's.

    Raises:
        MCPError: when the answer is a JSON-RPC error, or the connection is lost.
        ServerProtocolError: when what is to be sent, or what came back, is no valid MCP.
    """
    sent = application_entries(meta)
    _check([arguments, sent])
    parameters = CallToolRequestParams.model_validate(
        {"name": tool, "arguments": dict(arguments), "_meta": sent or None}
    )

    async def report(progress: float, total: float | None, message: str | None) -> None:
        await receive_progress(progress, total, message)

    try:
        answer = await session.send_request(
            CallToolRequest(params=parameters),
            _Answer,
            # Who asks for no progress sends no token: the server then sees what it always saw.
            progress_callback=None if receive_progress is no_progress else report,
        )
    except ValidationError as error:
        place = ".".join(str(part) for part in error.errors()[0]["loc"])
        message = f"the server's result is no valid MCP ({place}: {error.errors()[0]['msg']})"
        raise ServerProtocolError(INTERNAL_ERROR, message) from error
    if answer.root.get("resultType") == "input_required":
        # A handshake server that asks gets the same answer, from the SDK.
        raise ServerProtocolError(INVALID_REQUEST, "the tool asks for input, which nobody can give")
    return _outcome(answer.root)


def application_entries(meta: JsonObject) -> JsonObject:
    """Return the entries of a `_meta` that are the application's, and not the connection's."""
    return {
        key: value
        for key, value in meta.items()
        if key not in CONNECTION_KEYS and not key.startswith(RESERVED)
    }


def was_lost(error: MCPError) -> bool:
    """Return whether an error says that the server was not reached, or is gone.

    Servers use the same code for errors of their own.
    """
    if error.code != CONNECTION_CLOSED:
        return False
    return error.data == UNREACHED or (error.data is None and error.message.startswith(_LOST))


def _check(value: object) -> None:
    """Refuse what cannot be written as JSON: it would end the connection and every call on it."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False, default=dict).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise ServerProtocolError(INVALID_PARAMS, f"the arguments are no JSON: {error}") from error


def _outcome(answer: dict[str, Any]) -> Completed | Failed:
    fields = {
        key: value
        for key, value in answer.items()
        if key not in ("content", "isError", "resultType", "_meta")
    }
    # The server's name is the connection's, not the result's.
    meta = {k: v for k, v in (answer.get("_meta") or {}).items() if k != SERVER_INFO_META_KEY}
    if meta:
        fields["_meta"] = meta
    result = ToolResult(content=tuple(answer.get("content") or ()), fields=fields)
    return Failed(ToolError(result)) if answer.get("isError") else Completed(result)
