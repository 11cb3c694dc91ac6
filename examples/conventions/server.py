"""The build conventions of a small warehouse system, as an MCP server on stdio."""

import anyio
import mcp_types
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

CONVENTIONS = {
    "console": "Console screens show one task at a time, and confirm with F10.",
    "handheld": "Handheld screens fit 20 columns and 8 rows, and confirm by a scan.",
    "label": "Labels carry the bin in words and as a Code 128 bar code.",
}
CODE = {
    "PickConsole.java": 'confirm(Key.F10, "pick");',
    "CountHandheld.java": 'confirm(Scan.of(bin), "count");',
    "BinLabel.java": 'print(words(bin), Barcode.code128(bin));',
}


def list_build_conventions() -> str:
    return ", ".join(CONVENTIONS)


def get_build_convention(kind: str) -> str:
    return CONVENTIONS[kind]


def search_solution_code(query: str) -> str:
    return "\n".join(f"{file}: {line}" for file, line in CODE.items() if query in line)


def tool(name: str, description: str, **arguments: str) -> mcp_types.Tool:
    properties = {
        argument: {"type": "string", "description": meaning}
        for argument, meaning in arguments.items()
    }
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return mcp_types.Tool(name=name, description=description, input_schema=schema)


TOOLS = {
    list_build_conventions: tool(
        "list_build_conventions", "Lists the kinds of thing that have a build convention."
    ),
    get_build_convention: tool(
        "get_build_convention", "Reads one build convention.", kind="one of the listed kinds"
    ),
    search_solution_code: tool(
        "search_solution_code", "Finds lines of code.", query="a text that the line holds"
    ),
}


async def list_tools(
    context: ServerRequestContext, params: mcp_types.PaginatedRequestParams | None
) -> mcp_types.ListToolsResult:
    return mcp_types.ListToolsResult(tools=list(TOOLS.values()))


async def call_tool(
    context: ServerRequestContext, params: mcp_types.CallToolRequestParams
) -> mcp_types.CallToolResult:
    functions = {function.__name__: function for function in TOOLS}
    try:
        answer, is_error = functions[params.name](**(params.arguments or {})), False
    except (KeyError, TypeError) as error:
        answer, is_error = f"cannot do that: {error}", True
    content = mcp_types.TextContent(type="text", text=answer)
    return mcp_types.CallToolResult(content=[content], is_error=is_error)


async def main() -> None:
    server = Server("conventions", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


anyio.run(main)
