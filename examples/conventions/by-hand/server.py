"""The same server as beside it, which holds the order by itself: an acknowledgement in each tool.

Every tool hands out an `ack` for the next step, signed so that no agent can make one up, and takes
the `ack` of the step before it.
"""

import hashlib
import hmac
import secrets

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
SECRET = secrets.token_bytes(32)

server = MCPServer("conventions-by-hand")


def sign(session: str, step: str) -> str:
    digest = hmac.new(SECRET, f"{session}.{step}".encode(), hashlib.sha256)
    return f"{session}.{step}.{digest.hexdigest()}"


def acknowledged(ack: str, step: str, first: str) -> str:
    """Return the session of an `ack` that was handed out for `step`."""
    session, _, _ = ack.partition(".")
    if not hmac.compare_digest(ack.encode(), sign(session, step).encode()):
        raise ToolError(f"ack is missing or wrong. Call {first} and pass on the ack that it gives.")
    return session


def with_ack(answer: str, session: str, step: str) -> str:
    return f"{answer}\nack: {sign(session, step)}"


@server.tool()
def list_build_conventions(ack: str) -> str:
    """List the kinds of thing for which a build convention exists. Pass an empty ack to begin."""
    session = acknowledged(ack, "listed", "list_build_conventions") if ack else secrets.token_hex(4)
    return with_ack(", ".join(CONVENTIONS), session, "listed")


@server.tool()
def get_build_convention(kind: str, ack: str) -> str:
    """Read the build convention of one kind. Needs the ack of list_build_conventions."""
    session = acknowledged(ack, "listed", "list_build_conventions")
    if kind not in CONVENTIONS:
        raise ToolError(f"there is no convention for {kind}")
    return with_ack(CONVENTIONS[kind], session, "read")


@server.tool()
def search_solution_code(query: str, ack: str) -> str:
    """Find the lines of code that hold a text. Needs the ack of get_build_convention."""
    session = acknowledged(ack, "read", "get_build_convention")
    lines = "\n".join(f"{file}: {line}" for file, line in CODE.items() if query in line)
    return with_ack(lines, session, "read")


if __name__ == "__main__":
    server.run()
