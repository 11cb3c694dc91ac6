"""What `gateway --print-config` prints: how a client is told to use this very gateway."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, NoReturn

import typer

from seriatim.cli.voice import WRONG_USAGE, say, stop
from seriatim.runtime.gateway.http import Address, url_at
from seriatim.runtime.gateway.tls import Encryption
from seriatim.runtime.harness.config import (
    TOKEN_VARIABLE,
    AskedToken,
    Client,
    HttpServer,
    StdioServer,
    configuration_text,
)

_FILES: Final[Mapping[Client, str]] = MappingProxyType(
    {
        Client.CLAUDE_CODE: "`.mcp.json` in the project",
        Client.CODEX: "`~/.codex/config.toml`",
        Client.GEMINI: "`.gemini/settings.json` in the project, or `~/.gemini/settings.json`",
        Client.OPENCODE: "`opencode.json` in the project",
        Client.CURSOR: "`.cursor/mcp.json` in the project, or `~/.cursor/mcp.json`",
        Client.VSCODE: "`.vscode/mcp.json` in the project",
        Client.JSON: "the client's own file of MCP servers",
    }
)
"""Client -> the file that takes its snippet."""


def print_stdio(
    client: Client, path: Path, agent: str, options: Mapping[str, str], *, pin: bool
) -> NoReturn:
    """Print how a client starts this gateway, and leave.

    Args:
        options: the options that the gateway was given -> their values; empty ones are left out.
    """
    # Absolute: a client starts its servers wherever it likes, with a `PATH` of its own.
    program, *before = _ourselves()
    given = [word for name, value in options.items() if value for word in (name, value)]
    given += ["--pin"] if pin else []
    arguments = (*before, "gateway", str(path.absolute()), "--agent", agent, *given)
    typer.echo(configuration_text(client, StdioServer(program, arguments)), nl=False)
    say(f"put it into {_FILES[client]}")
    raise typer.Exit


def print_http(
    client: Client, agents: Sequence[str], address: Address, encryption: Encryption
) -> NoReturn:
    """Print how a client reaches the gateway at an address, and leave."""
    if not address.port:
        stop(
            "port 0 is another one each time, and cannot be written into a file",
            hint=f"choose one, such as `--http {address.host}:8080`",
            code=WRONG_USAGE,
        )
    if len(agents) > 1:
        stop(
            "a client has one agent, by the token that it shows",
            hint="give `--agent` once",
            code=WRONG_USAGE,
        )
    server = HttpServer(url_at(address, encryption), AskedToken())
    typer.echo(configuration_text(client, server), nl=False)
    asked = "give the client" if client is Client.VSCODE else f"set `{TOKEN_VARIABLE}` to"
    say(f"put it into {_FILES[client]}, and {asked} the token that the gateway prints")
    raise typer.Exit


def absolute(place: str) -> str:
    """Return a place of the audit log as it is seen from any directory."""
    return str(Path(place).absolute()) if place and "://" not in place else place


def _ourselves() -> tuple[str, ...]:
    """Return the command that runs seriatim, wherever it is called from."""
    script = Path(sys.argv[0])
    if script.name == "seriatim" and script.is_file():
        return (str(script.absolute()),)
    return (sys.executable, "-m", "seriatim")
