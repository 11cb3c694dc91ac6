"""One `tools/call` in the wire's JSON: what the SDK's models do not know is not lost."""

import json
from collections.abc import Mapping
from typing import Any, Final

from mcp import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    PARSE_ERROR,
    SERVER_INFO_META_KEY,
    CallToolResult,
    Request,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import RootModel, ValidationError

from interceptors import (
    Completed,
    Dialogue,
    Failed,
    InputRequired,
    JsonObject,
    Progress,
    ServerProtocolError,
    ToolError,
    ToolResult,
    no_progress,
)
from seriatim.runtime.servers.asking import SPOKEN_FOR
from seriatim.runtime.servers.endpoint import UNREACHED
from seriatim.runtime.servers.finite import is_finite
from seriatim.runtime.servers.session import RelaySession

RESERVED: Final = "io.modelcontextprotocol/"
"""Beginning of the `_meta` keys that speak of the connection between two parties."""
CONNECTION_KEYS: Final = frozenset({"progressToken", "traceparent", "tracestate", "baggage"})
"""Further `_meta` keys that each connection has for itself; the SDK writes them anew."""

READS: Final = frozenset(
    {
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
        "prompts/get",
        "completion/complete",
    }
)
"""The requests beside calls that are sent to servers once they are connected."""
UNREADABLE_ANSWER: Final = "the answer is no valid JSON-RPC message"

_INFINITE: Final = "the server's result holds a number that JSON cannot hold"
_UNREADABLE: Final = "Failed to parse "
"""How the SDK's own error begins that says that an answer could not be read."""
_LOST: Final = ("Connection closed", "SSE stream ")
"""How the SDK's own errors begin that say that no answer will come."""


class _Answer(RootModel[dict[str, Any]]):
    """A result as it came."""


async def send_call(
    session: RelaySession,
    tool: str,
    arguments: JsonObject,
    meta: JsonObject,
    receive_progress: Progress,
    dialogue: Dialogue,
) -> Completed | Failed:
    """Send one `tools/call` and return its result; judges no output schema: that is the caller's.

    Raises:
        MCPError: when the answer is a JSON-RPC error, or the connection is lost.
        ServerProtocolError: when what is to be sent, or what came back, is no valid MCP.
    """
    sent = application_entries(meta)
    _check([arguments, sent, dialogue.told])
    parameters = {
        "name": tool,
        "arguments": dict(arguments),
        "_meta": {**sent, SPOKEN_FOR: dialogue.capabilities},
        **dialogue.told,
    }

    async def report(progress: float, total: float | None, message: str | None) -> None:
        await receive_progress(progress, total, message)

    try:
        with session.dispatcher.during(dialogue):
            answer = await session.send_request(
                Request[dict[str, Any], str](method="tools/call", params=parameters),
                _Answer,
                # Who asks for no progress sends no token: the server then sees what it always saw.
                progress_callback=None if receive_progress is no_progress else report,
            )
    except ValidationError as error:
        raise _invalid(error) from error
    except MCPError as error:
        if error.code == PARSE_ERROR and error.message.startswith(_UNREADABLE):
            raise ServerProtocolError(INTERNAL_ERROR, UNREADABLE_ANSWER) from error
        raise
    if not is_finite(answer.root):
        raise ServerProtocolError(INTERNAL_ERROR, _INFINITE)
    if session.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return _modern_outcome(answer.root)
    return _outcome(answer.root)


async def send_read(
    session: RelaySession, method: str, params: JsonObject, capabilities: JsonObject
) -> dict[str, Any]:
    """Send one of `READS` and return its result.

    Args:
        capabilities: what the client declares that servers may ask of it.

    Raises:
        ValueError: when the method is none of them: a call of a tool goes through the gate.
        MCPError: when the answer is a JSON-RPC error, or the connection is lost.
        ServerProtocolError: when what is to be sent, or what came back, is no valid MCP.
    """
    if method not in READS:
        raise ValueError(f"{method} does not only read")
    meta = params.get("_meta")
    sent = application_entries(meta) if isinstance(meta, Mapping) else {}
    _check([params])
    request = Request[dict[str, Any], str](
        method=method, params={**params, "_meta": {**sent, SPOKEN_FOR: capabilities}}
    )
    try:
        answer = await session.send_request(request, _Answer)
    except ValidationError as error:
        raise _invalid(error) from error
    if not is_finite(answer.root):
        raise ServerProtocolError(INTERNAL_ERROR, _INFINITE)
    return answer.root


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


def _modern_outcome(answer: dict[str, Any]) -> Completed | Failed:
    """Return the outcome of an answer of the newest protocol, which may be other than a result."""
    match answer.get("resultType", "complete"):
        case "complete":
            try:
                # The SDK checks it only for being a result or a question.
                CallToolResult.model_validate(answer, by_name=False)
            except ValidationError as error:
                raise _invalid(error) from error
            return _outcome(answer)
        case "input_required":
            return Failed(InputRequired(answer))
        case other:
            message = f"the server's result is of a kind that nobody asked for (`{other}`)"
            raise ServerProtocolError(INTERNAL_ERROR, message)


def _invalid(error: ValidationError) -> ServerProtocolError:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    message = f"the server's result is no valid MCP ({place}: {first['msg']})"
    return ServerProtocolError(INTERNAL_ERROR, message)


def _outcome(answer: dict[str, Any]) -> Completed | Failed:
    fields = {
        key: value
        for key, value in answer.items()
        if key not in ("content", "resultType", "_meta") and (key, value) != ("isError", True)
    }
    # The server's name is the connection's, not the result's.
    meta = {k: v for k, v in (answer.get("_meta") or {}).items() if k != SERVER_INFO_META_KEY}
    if meta:
        fields["_meta"] = meta
    result = ToolResult(content=tuple(answer.get("content") or ()), fields=fields)
    return Failed(ToolError(result)) if answer.get("isError") else Completed(result)
