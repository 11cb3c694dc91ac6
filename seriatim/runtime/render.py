"""What a harness reads of an outcome; `tool_return` makes of the same what a model reads."""

from typing import assert_never

import mcp_types
from mcp import MCPError

from interceptors import (
    Completed,
    Failed,
    Outcome,
    ProtocolError,
    Refused,
    ToolError,
    ToolResult,
    text_of,
)


def to_mcp(name: str, outcome: Outcome) -> mcp_types.CallToolResult:
    """Return the outcome of a call of `name` as an MCP tool result.

    Raises:
        MCPError: when the server answered with a JSON-RPC error; code, message and data are its.
    """
    match outcome:
        case Completed(result):
            return _relayed(result, is_error=False)
        case Failed(ToolError(result)):
            return _relayed(result, is_error=True)
        case Failed(ProtocolError(code, message, data)):
            raise MCPError(code, message, *data)
        case Refused() | Failed():
            # Flagged as an error: a client would else hold the text against the tool's output
            # schema, and its reader would never see it.
            text = mcp_types.TextContent(type="text", text=text_of(name, outcome))
            return mcp_types.CallToolResult(content=[text], is_error=True)
        case _:
            assert_never(outcome)


def _relayed(result: ToolResult, *, is_error: bool) -> mcp_types.CallToolResult:
    return mcp_types.CallToolResult.model_validate(
        {**result.fields, "content": list(result.content), "isError": is_error}
    )
