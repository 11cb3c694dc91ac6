"""The build conventions of a small warehouse system, as an MCP server on stdio."""

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

CONVENTIONS = {
    "console": "Console screens show one task at a time, and confirm with F10.",
    "handheld": "Handheld screens fit 20 columns and 8 rows, and confirm by a scan.",
    "label": "Labels carry the bin in words and as a Code 128 bar code.",
}
CODE = {
    "PickConsole.java": 'confirm(Key.F10, "pick");',
    "CountHandheld.java": 'confirm(Scan.of(bin), "count");',
    "BinLabel.java": "print(words(bin), Barcode.code128(bin));",
}

server = MCPServer("conventions")


@server.tool()
def list_build_conventions() -> str:
    """List the kinds of thing for which a build convention exists."""
    return ", ".join(CONVENTIONS)


@server.tool()
def get_build_convention(kind: str) -> str:
    """Read the build convention of one kind."""
    if kind not in CONVENTIONS:
        raise ToolError(f"there is no convention for {kind}")
    return CONVENTIONS[kind]


@server.tool()
def search_solution_code(query: str) -> str:
    """Find the lines of code that hold a text."""
    return "\n".join(f"{file}: {line}" for file, line in CODE.items() if query in line)


if __name__ == "__main__":
    server.run()
