"""What a harness reads of an outcome; `tool_return` makes of the same what a model reads."""

from typing import Any, TypeAlias, assert_never

from mcp import MCPError

from interceptors import (
    Completed,
    Failed,
    InputRequired,
    JsonObject,
    Outcome,
    ProtocolError,
    Refused,
    ToolError,
    ToolResult,
    text_of,
)

WireResult: TypeAlias = dict[str, Any]
"""The `result` of an answer in the wire's JSON, of which no model drops what it does not know."""


def to_mcp(name: str, outcome: Outcome) -> WireResult:
    """Return the outcome of a call of `name` as an MCP tool result, or as what the tool asks for.

    Raises:
        MCPError: when the server answered with a JSON-RPC error; code, message and data are its.
    """
    match outcome:
        case Completed(result):
            return _relayed(result)
        case Failed(ToolError(result)):
            return {**_relayed(result), "isError": True}
        case Failed(ProtocolError(code, message, data)):
            raise MCPError(code, message, *data)
        case Failed(InputRequired(question)):
            return dict(question)
        case Refused() | Failed():
            # Flagged as an error: a client would else hold the text against the tool's output
            # schema, and its reader would never see it.
            text: JsonObject = {"type": "text", "text": text_of(name, outcome)}
            return {"content": [text], "isError": True}
        case _:
            assert_never(outcome)


def _relayed(result: ToolResult) -> WireResult:
    return {"content": list(result.content), **result.fields}
