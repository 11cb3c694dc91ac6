"""What `benchmarks.gateway` compares ours with: `python -m benchmarks.fronts direct|relay|fastmcp`.

Each serves the tools of one test server over streamable HTTP, on a free port of 127.0.0.1, and
prints its URL when it is ready. All run under uvicorn, on asyncio's own loop, as their own commands
would.
"""

import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import mcp_types as t
import uvicorn
from mcp import Client, StdioServerParameters
from mcp.server.lowlevel import Server
from starlette.applications import Starlette

from seriatim.runtime.gateway.http import PATH, Address, listen
from tests.support.mcp_servers import SERVERS

UPSTREAM = (sys.executable, str(SERVERS / "counting.py"))
Front = AbstractAsyncContextManager[Starlette]


@asynccontextmanager
async def direct() -> AsyncIterator[Starlette]:
    """Serve the tools in the process itself, on the SDK alone: no gateway, and no upstream."""
    sys.path.insert(0, str(SERVERS))
    from sdk import server  # noqa: PLC0415  a script that imports its neighbour by its bare name

    yield server().streamable_http_app()


@asynccontextmanager
async def relay() -> AsyncIterator[Starlette]:
    """Put the SDK's server before the SDK's client, and nothing between: what any gateway costs."""
    command, *arguments = UPSTREAM
    async with Client(StdioServerParameters(command=command, args=arguments)) as upstream:
        listed = (await upstream.list_tools()).tools

        async def list_tools(_context: Any, _params: Any) -> t.ListToolsResult:
            return t.ListToolsResult(tools=listed)

        async def call_tool(_context: Any, params: t.CallToolRequestParams) -> t.CallToolResult:
            return await upstream.session.call_tool(params.name, params.arguments)

        schemas = {tool.name: tool.input_schema for tool in listed}
        server: Server[Any] = Server(
            "relay",
            version="1",
            on_list_tools=list_tools,
            on_call_tool=call_tool,
            get_tool_input_schema=schemas.get,
        )
        yield server.streamable_http_app()


@asynccontextmanager
async def fastmcp() -> AsyncIterator[Starlette]:
    """Serve FastMCP's proxy as its documentation makes one."""
    from fastmcp.client.transports import StdioTransport  # noqa: PLC0415  for this front alone
    from fastmcp.server import create_proxy  # noqa: PLC0415  for this front alone

    command, *arguments = UPSTREAM
    yield create_proxy(StdioTransport(command, arguments), name="proxy").http_app()


FRONTS: Mapping[str, Callable[[], Front]] = {
    "direct": direct,
    "relay": relay,
    "fastmcp": fastmcp,
}


async def main(name: str) -> None:
    with listen(Address("127.0.0.1", 0)) as listener:
        async with FRONTS[name]() as app:
            config = uvicorn.Config(app, log_level="critical", timeout_keep_alive=60)
            # It listens already: whoever comes early waits for the start.
            print(f"http://127.0.0.1:{listener.getsockname()[1]}{PATH}", flush=True)
            await uvicorn.Server(config).serve([listener])


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
