"""The servers that a client's configuration file names, as a workspace defines them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias, final

from interceptors import Tier
from seriatim.cli.init_names import free, slug
from seriatim.cli.init_variables import Variables
from seriatim.runtime.harness.commented_json import read_object
from seriatim.topology import HttpTransport, ServerDefinition, StdioTransport, Transport

_FOLDERS: Final = (".vscode", ".cursor", ".gemini")
"""Folders of a project in which clients keep their files."""
_NOWHERE: Final = "claude_desktop_config.json"
"""The file of a client that starts servers in no particular directory."""

_Entry: TypeAlias = Mapping[str, Any]


class SourceError(Exception):
    """A client's file cannot be used.

    Attributes:
        hint: the way out.
    """

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint: Final = hint


@final
@dataclass(frozen=True, slots=True)
class LeftOut:
    """A server that is in the client's file and will not be in the workspace.

    Attributes:
        reason: as a clause.
        on_purpose: whether the client does not use it either.
    """

    name: str
    reason: str
    on_purpose: bool


@final
@dataclass(frozen=True, slots=True)
class Source:
    """What a client's file says.

    Attributes:
        variables: what stands in the servers' definitions for values that are not to be written.
    """

    servers: tuple[ServerDefinition, ...]
    left_out: tuple[LeftOut, ...]
    variables: Variables


def read_source(file: Path, workspace: Path) -> Source:
    """Read the file of Claude Code or Desktop, Cursor, VS Code, or whoever writes as they do.

    Args:
        workspace: the directory for which the servers are defined.

    Raises:
        SourceError: when it cannot be read, or names no servers.
    """
    document = _document(file)
    entries = _entries(document, file)
    variables = Variables(_questions(document))
    start = _start(file, workspace.absolute())
    servers: dict[str, ServerDefinition] = {}
    left_out = []
    for name, entry in entries.items():
        id_ = free(slug(name) or "server", servers)
        try:
            transport = _transport(id_, entry, variables, start)
        except _NotUsable as problem:
            left_out.append(LeftOut(name, str(problem), problem.on_purpose))
        else:
            servers[id_] = ServerDefinition(id_, transport, Tier.CAUTIOUS, {}, {})
    return Source(tuple(servers.values()), tuple(left_out), variables)


class _NotUsable(Exception):  # noqa: N818  not a fault of ours: it says why a server is left out
    def __init__(self, reason: str, *, on_purpose: bool = False) -> None:
        super().__init__(reason)
        self.on_purpose: Final = on_purpose


def _document(file: Path) -> _Entry:
    try:
        return read_object(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise SourceError(
            f"cannot read `{file}`: {reason}", "give the file in which a client names its servers"
        ) from error
    except (ValueError, RecursionError) as error:
        raise SourceError(
            f"`{file}` is no JSON: {str(error).partition(chr(10))[0]}",
            "correct the file; comments are allowed",
        ) from error


def _entries(document: _Entry, file: Path) -> _Entry:
    # VS Code has `servers` in a file of its own, and `mcp: {servers}` within its settings.
    match document:
        case (
            {"mcpServers": dict(entries)}
            | {"servers": dict(entries)}
            | {"mcp": {"servers": dict(entries)}}
        ):
            return entries
        case _:
            raise SourceError(
                f"`{file}` names no servers: it has neither `mcpServers` nor `servers`",
                "give a file such as `.mcp.json` or `.vscode/mcp.json`",
            )


def _questions(document: _Entry) -> Mapping[str, str]:
    """Return what VS Code would ask its user, by the id of the input."""
    inputs = document.get("inputs")
    return {
        str(entry["id"]): str(entry.get("description", ""))
        for entry in (inputs if isinstance(inputs, list) else [])
        if isinstance(entry, dict) and "id" in entry
    }


def _start(file: Path, workspace: Path) -> Path:
    """Return where a client starts its servers; the workspace's directory where it does not say."""
    if file.name == _NOWHERE:
        return workspace
    folder = file.absolute().parent
    return folder.parent if folder.name in _FOLDERS else folder


def _transport(id_: str, entry: Any, variables: Variables, start: Path) -> Transport:
    match entry:
        case {"disabled": True} | {"enabled": False}:
            raise _NotUsable("it is switched off there", on_purpose=True)
        case {"type": "sse"}:
            raise _NotUsable("it speaks SSE, which streamable HTTP has replaced")
        case {"url": str(url)} | {"httpUrl": str(url)} | {"serverUrl": str(url)}:
            endpoint = variables.address(url, id_, f"the URL of server `{id_}`")
            return HttpTransport(endpoint, _headers(id_, entry, variables))
        case {"command": str(program)} if program:
            return _stdio(id_, program, entry, variables, start)
        case dict():
            raise _NotUsable("it has neither a `command` nor a `url`")
        case _:
            raise _NotUsable("it is no object")


def _stdio(
    id_: str, program: str, entry: _Entry, variables: Variables, start: Path
) -> StdioTransport:
    words = (program, *(str(word) for word in _list(entry, "args")))
    env = {
        str(name): variables.hidden(str(value), str(name), f"`env` of server `{id_}`")
        for name, value in _table(entry, "env").items()
        if value is not None
    }
    given = variables.plain(str(entry.get("cwd") or ""), f"`cwd` of server `{id_}`")
    cwd = given if given.startswith("${") else os.path.normpath(start / given)
    command = tuple(variables.argument(words, index, id_) for index in range(len(words)))
    return StdioTransport(command, env, cwd)


def _headers(id_: str, entry: _Entry, variables: Variables) -> Mapping[str, str]:
    return {
        str(name): variables.hidden(str(value), f"{id_}-{name}", f"a header of server `{id_}`")
        for name, value in _table(entry, "headers").items()
    }


def _list(entry: _Entry, name: str) -> list[Any]:
    value = entry.get(name)
    return value if isinstance(value, list) else []


def _table(entry: _Entry, name: str) -> dict[Any, Any]:
    value = entry.get(name)
    return value if isinstance(value, dict) else {}
