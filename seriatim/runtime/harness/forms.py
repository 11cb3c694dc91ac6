"""How each harness is started so that it has the tools of its agent, and asks nobody about them.

As the harnesses' own documentation and programs had it in December 2026 (Claude Code 2.1, Codex
CLI 0.171, Gemini CLI 0.61, opencode 1.18). The token stands in a file that only its owner can read,
or in the environment where the harness takes it from nowhere else, and never on a command line.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final, assert_never, final

from seriatim.runtime.harness.access import Access
from seriatim.runtime.harness.commented_json import read_object
from seriatim.runtime.harness.config import (
    NAME,
    TOKEN_VARIABLE,
    Configuration,
    GivenToken,
    HttpServer,
    as_json,
    gemini,
    mcp_servers,
    opencode,
    toml_value,
)
from seriatim.topology.models import Harness

URL_VARIABLE: Final = "SERIATIM_URL"
CONFIG_VARIABLE: Final = "SERIATIM_MCP_CONFIG"


class Manner(Enum):
    """How somebody works with a harness."""

    AS_ASKED = "as asked"
    """The harness's own arguments say it; without any it usually talks with a person."""
    ONE_TASK = "one task"
    """It gets a task on stdin, and ends with its answer on stdout."""


@final
@dataclass(frozen=True, slots=True)
class Launch:
    """What to start.

    Attributes:
        environment: what the harness gets beside our own environment.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)


def prepare(
    harness: Harness,
    command: tuple[str, ...],
    arguments: tuple[str, ...],
    manner: Manner,
    access: Access,
    directory: Path,
) -> Launch:
    """Write what a harness reads, and return how to start it.

    Args:
        directory: where its files go; empty, for its owner only, and the caller's to remove.
        command: the program, and arguments that go before ours.
        arguments: what goes after ours.

    Raises:
        OSError: when a file cannot be written.
    """
    server = HttpServer(access.url, GivenToken(access.token))
    one_task = manner is Manner.ONE_TASK
    match harness:
        case Harness.CLAUDE_CODE:
            # With `=`: both flags would else take the words that follow for further values.
            # See https://code.claude.com/docs/en/cli-reference, and for the name of the tools
            # https://code.claude.com/docs/en/permissions.
            file = _write(directory / "mcp.json", mcp_servers(server))
            ours = (
                f"--mcp-config={file}",
                "--strict-mcp-config",
                f"--allowedTools=mcp__{NAME}__*",
                *(("--print",) if one_task else ()),
            )
            return Launch((*command, *ours, *arguments), {})
        case Harness.CODEX:
            # See https://developers.openai.com/codex/config-reference; `exec` takes the task from
            # stdin where it is `-`.
            settings = {
                "url": access.url,
                "bearer_token_env_var": TOKEN_VARIABLE,
                "default_tools_approval_mode": "approve",
            }
            overrides = [
                word
                for key, value in settings.items()
                for word in ("-c", f"mcp_servers.{NAME}.{key}={toml_value(value)}")
            ]
            before, after = (("exec",), ("-",)) if one_task else ((), ())
            return Launch(
                (*command, *overrides, *before, *arguments, *after), {TOKEN_VARIABLE: access.token}
            )
        case Harness.GEMINI:
            # See https://geminicli.com/docs/cli/enterprise; a file that
            # `GEMINI_CLI_SYSTEM_SETTINGS_PATH` names would have to be root's.
            home = _gemini_home(directory, gemini(server))
            # In a folder that nobody has called trusted it would use no MCP server.
            ours = ("--skip-trust",) if one_task else ()
            return Launch((*command, *ours, *arguments), {"GEMINI_CLI_HOME": str(home)})
        case Harness.OPENCODE:
            # See https://opencode.ai/docs/config/.
            file = _write(directory / "opencode.json", opencode(server))
            ours = ("run",) if one_task else ()
            return Launch((*command, *ours, *arguments), {"OPENCODE_CONFIG": str(file)})
        case Harness.ANY:
            file = _write(directory / "mcp.json", mcp_servers(server))
            environment = {
                CONFIG_VARIABLE: str(file),
                URL_VARIABLE: access.url,
                TOKEN_VARIABLE: access.token,
            }
            places = {"{mcp_config}": str(file), "{url}": access.url}
            return Launch(filled((*command, *arguments), places), environment)
        case _:
            assert_never(harness)


def filled(words: tuple[str, ...], places: Mapping[str, str]) -> tuple[str, ...]:
    """Return words in which each name of a place has become what stands there.

    >>> filled(("--config={file}", "{}"), {"{file}": "a.json"})
    ('--config=a.json', '{}')
    """
    for name, value in places.items():
        words = tuple(word.replace(name, value) for word in words)
    return words


def _write(file: Path, configuration: Configuration) -> Path:
    """Write a file that only its owner can read."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(as_json(configuration))
    return file


def _gemini_home(directory: Path, ours: Configuration) -> Path:
    """Make a home for Gemini CLI: the user's own, with our server in place of all others.

    Everything but the settings is a link to the user's, so that whoever has logged in stays so.
    """
    own = Path(os.environ.get("GEMINI_CLI_HOME") or Path.home()) / ".gemini"
    folder = directory / ".gemini"
    folder.mkdir(mode=0o700)
    settings: Configuration = {}
    with suppress(OSError, ValueError):
        settings = read_object((own / "settings.json").read_text(encoding="utf-8"))
    with suppress(OSError):
        for entry in own.iterdir():
            if entry.name != "settings.json":
                (folder / entry.name).symlink_to(entry.absolute())
    servers = {NAME: {**ours["mcpServers"][NAME], "trust": True}}
    _write(
        folder / "settings.json",
        {**settings, "mcpServers": servers, "mcp": {"allowed": [NAME]}},
    )
    return directory
