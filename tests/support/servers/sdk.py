"""The tools of the tool box on the real low-level server of the MCP SDK.

Over stdio, or with `--http` over streamable HTTP on 127.0.0.1, on a free port or on that of
`--port`: it prints the endpoint's URL on a line of its own when it is ready. With `--token TOKEN`
it answers 401 to whoever does not bear the token.
"""

import socket
import sys
from typing import Any

import anyio
import mcp_types as t
import uvicorn
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from starlette.responses import PlainTextResponse
from tool_box import TOOLS, Call, RpcError, ToolBox

TOOL_MODELS = [t.Tool.model_validate(tool, by_name=False) for tool in TOOLS]
BOX = ToolBox()


async def list_tools(_context: Any, _params: Any) -> t.ListToolsResult:
    return t.ListToolsResult(tools=TOOL_MODELS)


async def call_tool(context: Any, params: t.CallToolRequestParams) -> Any:
    def report(done: float, total: float, message: str) -> None:
        anyio.from_thread.run(context.session.report_progress, done, total, message)

    meta = dict(context.meta or {})
    call = Call(meta, report)
    try:
        result = await anyio.to_thread.run_sync(
            BOX.perform, params.name, params.arguments or {}, call, abandon_on_cancel=True
        )
    except RpcError as error:
        raise MCPError(error.code, error.message, error.data) from error
    finally:
        call.cancelled.set()
    model = t.InputRequiredResult if "inputRequests" in result else t.CallToolResult
    return model.model_validate(result, by_name=False)


def server() -> Server[Any]:
    schemas = {tool.name: tool.input_schema for tool in TOOL_MODELS}
    return Server(
        "sdk",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=schemas.get,
    )


async def over_stdio() -> None:
    async with stdio_server() as (incoming, outgoing):
        chosen = server()
        await chosen.run(incoming, outgoing, chosen.create_initialization_options())


async def over_http(token: str, port: int) -> None:
    app = server().streamable_http_app()

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers") or [])
        known = not token or headers.get(b"authorization") == f"Bearer {token}".encode()
        if scope["type"] == "http" and not known:
            await PlainTextResponse("who are you?", 401)(scope, receive, send)
            return
        await app(scope, receive, send)

    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()
        print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)  # noqa: T201  the port is this program's output
        config = uvicorn.Config(guarded, log_level="error", timeout_graceful_shutdown=0)
        await uvicorn.Server(config).serve([listener])


if __name__ == "__main__":
    if "--http" in sys.argv:
        bearer = sys.argv[sys.argv.index("--token") + 1] if "--token" in sys.argv else ""
        port = sys.argv[sys.argv.index("--port") + 1] if "--port" in sys.argv else "0"
        anyio.run(over_http, bearer, int(port))
    else:
        anyio.run(over_stdio)
