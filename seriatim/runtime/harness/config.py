"""How MCP clients write down a server: the shapes of their configuration files.

As the clients' own documentation had them in December 2026; each function names its page.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, TypeAlias, assert_never, final

NAME: Final = "seriatim"
"""The name under which a client knows the gateway."""
TOKEN_VARIABLE: Final = "SERIATIM_TOKEN"  # noqa: S105  the name of a variable, and no token
"""The environment variable from which a client takes the bearer token."""


class Client(Enum):
    """A client whose configuration we can write; `json` is what most others read."""

    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    GEMINI = "gemini"
    OPENCODE = "opencode"
    CURSOR = "cursor"
    VSCODE = "vscode"
    JSON = "json"


@final
@dataclass(frozen=True, slots=True)
class StdioServer:
    """A server that the client starts."""

    command: str
    arguments: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class GivenToken:
    """A bearer token that stands in the configuration itself."""

    value: str = field(repr=False)


@final
@dataclass(frozen=True, slots=True)
class AskedToken:
    """A bearer token that the client takes from `TOKEN_VARIABLE`, or asks its user for."""


Token: TypeAlias = GivenToken | AskedToken


@final
@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server that the client reaches over streamable HTTP."""

    url: str
    token: Token


McpServer: TypeAlias = StdioServer | HttpServer

Configuration: TypeAlias = Mapping[str, Any]
"""The content of a JSON file."""


def configuration_text(client: Client, server: McpServer) -> str:
    """Return what a client's file has to hold so that it knows the server."""
    match client:
        case Client.CLAUDE_CODE | Client.JSON:
            return as_json(mcp_servers(server))
        case Client.CODEX:
            return codex(server)
        case Client.GEMINI:
            return as_json(gemini(server))
        case Client.OPENCODE:
            return as_json(opencode(server))
        case Client.CURSOR:
            return as_json(cursor(server))
        case Client.VSCODE:
            return as_json(vscode(server))
        case _:
            assert_never(client)


def as_json(configuration: Configuration) -> str:
    """Return the text of a JSON file."""
    return json.dumps(configuration, indent=2, ensure_ascii=False) + "\n"


def mcp_servers(server: McpServer) -> Configuration:
    """Return the shape of Claude Code's `.mcp.json`; see https://code.claude.com/docs/en/mcp."""
    match server:
        case StdioServer():
            entry = _stdio(server)
        case HttpServer(url, token):
            headers = _headers(token, f"${{{TOKEN_VARIABLE}}}")
            entry = {"type": "http", "url": url, "headers": headers}
        case _:
            assert_never(server)
    return {"mcpServers": {NAME: entry}}


def codex(server: McpServer) -> str:
    """Return the shape of Codex's `config.toml`; see https://developers.openai.com/codex/mcp.

    A token always comes from the environment: Codex refuses one in the file.
    """
    match server:
        case StdioServer(command, arguments):
            values: Configuration = {"command": command, "args": list(arguments)}
        case HttpServer(url):
            values = {"url": url, "bearer_token_env_var": TOKEN_VARIABLE}
        case _:
            assert_never(server)
    lines = [f"{key} = {toml_value(value)}" for key, value in values.items()]
    return "\n".join([f"[mcp_servers.{NAME}]", *lines, ""])


def toml_value(value: str | list[str]) -> str:
    """Return a text, or a list of texts, as TOML writes it, which is nearly as JSON does."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def gemini(server: McpServer) -> Configuration:
    """Return the shape of Gemini CLI's `settings.json`.

    See https://geminicli.com/docs/tools/mcp-server/; `url` would be the older transport, SSE.
    """
    match server:
        case StdioServer():
            entry = _stdio(server)
        case HttpServer(url, token):
            entry = {"httpUrl": url, "headers": _headers(token, f"${{{TOKEN_VARIABLE}}}")}
        case _:
            assert_never(server)
    return {"mcpServers": {NAME: entry}}


def opencode(server: McpServer) -> Configuration:
    """Return the shape of `opencode.json`; see https://opencode.ai/docs/mcp-servers/."""
    match server:
        case StdioServer(command, arguments):
            entry: dict[str, Any] = {"type": "local", "command": [command, *arguments]}
        case HttpServer(url, token):
            entry = {
                "type": "remote",
                "url": url,
                "headers": _headers(token, f"{{env:{TOKEN_VARIABLE}}}"),
                "oauth": False,
            }
        case _:
            assert_never(server)
    return {"$schema": "https://opencode.ai/config.json", "mcp": {"servers": {NAME: entry}}}


def cursor(server: McpServer) -> Configuration:
    """Return the shape of Cursor's `.cursor/mcp.json`; see https://cursor.com/docs/mcp."""
    match server:
        case StdioServer():
            entry = {"type": "stdio", **_stdio(server)}
        case HttpServer(url, token):
            entry = {"url": url, "headers": _headers(token, f"${{env:{TOKEN_VARIABLE}}}")}
        case _:
            assert_never(server)
    return {"mcpServers": {NAME: entry}}


def vscode(server: McpServer) -> Configuration:
    """Return the shape of VS Code's `.vscode/mcp.json`.

    See https://code.visualstudio.com/docs/agents/reference/mcp-configuration: it asks for the
    token, and keeps it.
    """
    match server:
        case StdioServer():
            return {"servers": {NAME: {"type": "stdio", **_stdio(server)}}}
        case HttpServer(url, token):
            question = {
                "type": "promptString",
                "id": f"{NAME}-token",
                "description": "The bearer token that the gateway prints",
                "password": True,
            }
            headers = _headers(token, f"${{input:{NAME}-token}}")
            entry = {"type": "http", "url": url, "headers": headers}
            return {"inputs": [question], "servers": {NAME: entry}}
        case _:
            assert_never(server)


def _stdio(server: StdioServer) -> dict[str, Any]:
    return {"command": server.command, "args": list(server.arguments)}


def _headers(token: Token, reference: str) -> dict[str, str]:
    """Return the header for a token; `reference` is how the client's file names one it looks up."""
    match token:
        case GivenToken(value):
            return {"Authorization": f"Bearer {value}"}
        case AskedToken():
            return {"Authorization": f"Bearer {reference}"}
        case _:
            assert_never(token)
