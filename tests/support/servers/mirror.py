"""An MCP server whose tool `look` answers with all that it can see of its caller.

Over stdio, or with `--http` over streamable HTTP on a free port of 127.0.0.1, as `sdk.py` does.
Every HTTP answer of its own bears a cookie and a header `X-Upstream`.
"""

import json
import os
import socket
import sys
from typing import Any

import anyio
import mcp_types as t
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

LOOK = t.Tool(name="look", description="Look at your caller.", input_schema={"type": "object"})


async def list_tools(_context: Any, _params: Any) -> t.ListToolsResult:
    return t.ListToolsResult(tools=[LOOK])


async def call_tool(context: Any, params: t.CallToolRequestParams) -> t.CallToolResult:
    seen = {
        "environment": dict(os.environ),
        "arguments": sys.argv,
        "headers": dict(context.request.headers) if context.request else {},
        "meta": dict(context.meta or {}),
        "params": params.arguments,
    }
    return t.CallToolResult(content=[t.TextContent(type="text", text=json.dumps(seen))])


def server() -> Server[Any]:
    return Server(
        "mirror",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema={"look": LOOK.input_schema}.get,
    )


async def over_stdio() -> None:
    async with stdio_server() as (incoming, outgoing):
        chosen = server()
        await chosen.run(incoming, outgoing, chosen.create_initialization_options())


async def over_http() -> None:
    app = server().streamable_http_app()

    async def marked(scope: Any, receive: Any, send: Any) -> None:
        async def mark(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = [(b"set-cookie", b"upstream=secret"), (b"x-upstream", b"secret")]
                message = {**message, "headers": [*message["headers"], *own]}
            await send(message)

        await app(scope, receive, mark)

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)  # noqa: T201  the port is this program's output
        config = uvicorn.Config(marked, log_level="error", timeout_graceful_shutdown=0)
        await uvicorn.Server(config).serve([listener])


if __name__ == "__main__":
    anyio.run(over_http if "--http" in sys.argv else over_stdio)
