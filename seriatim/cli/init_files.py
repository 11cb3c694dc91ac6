"""The files of a workspace that `init` writes, in SwarmKit's layout and for a reviewer's eyes."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, assert_never, final

import mcp_types
import yaml

from interceptors import ToolRef
from seriatim.cli.init_names import slug
from seriatim.cli.init_variables import Variable
from seriatim.cli.lines import escaped
from seriatim.topology import HttpTransport, ServerDefinition, StdioTransport

AGENT: Final = "agent"
"""The id of the agent that holds all skills."""
LONGEST_DESCRIPTION: Final = 400
"""Characters of a tool's description that its skill gets; the agent is shown the server's own."""
SHORTEST_DESCRIPTION: Final = 10
"""Characters that SwarmKit wants of it."""
LONGEST_COMMENT: Final = 60
"""Characters of a description that stand beside a skill in the topology."""

_KEPT: Final = (
    "# Written by `seriatim init`, and yours from here on: run again, it changes nothing in here."
)


class _Dumper(yaml.SafeDumper):
    """Escapes what does not print, some of which YAML would read back as the end of a line."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        style = None if text.isprintable() else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _Dumper.represent_text)


@final
@dataclass(frozen=True, slots=True)
class NamedTool:
    """A tool of a server, under the id of its skill."""

    id: str
    ref: ToolRef
    tool: mcp_types.Tool

    @property
    def description(self) -> str:
        """What the tool does, on one line; never empty."""
        text = " ".join((self.tool.description or self.tool.title or "").split())
        return escaped(text or f"The tool {self.ref.name} of server {self.ref.server}.")


def workspace_text(
    directory: Path, servers: Iterable[ServerDefinition], variables: Sequence[Variable]
) -> str:
    """Return `workspace.yaml`."""
    name = directory.absolute().name
    document = {
        "apiVersion": "swarmkit/v1",
        "kind": "Workspace",
        "metadata": {"id": slug(name) or "workspace", "name": name or "workspace"},
    }
    comments = [_KEPT]
    if variables:
        comments += ["#", "# It needs these variables in the environment:"]
        comments += [f"#   {variable.name}: {variable.whence}" for variable in variables]
    text = _yaml(document, flow=True)
    return "\n".join([*comments, f"{text}mcp_servers:", servers_text(servers, directory)])


def _entry(server: ServerDefinition, directory: Path) -> Mapping[str, Any]:
    entry: dict[str, Any] = {"id": server.id}
    match server.transport:
        case StdioTransport(command, env, cwd):
            entry |= {"transport": "stdio", "command": list(command)}
            if env:
                entry["env"] = dict(env)
            start = cwd if cwd.startswith("${") else os.path.relpath(cwd, directory.absolute())
            if start != ".":
                entry["cwd"] = start
        case HttpTransport(endpoint, headers):
            entry |= {"transport": "http", "endpoint": endpoint}
            if headers:
                entry["headers"] = dict(headers)
        case _:
            assert_never(server.transport)
    return entry


def skill_text(tool: NamedTool) -> str:
    """Return the file of a skill."""
    description = tool.description
    if len(description) > LONGEST_DESCRIPTION:
        description = f"{description[: LONGEST_DESCRIPTION - 1].rstrip()}…"
    document = {
        "apiVersion": "swarmkit/v1",
        "kind": "Skill",
        "metadata": {
            "id": tool.id,
            "name": escaped(" ".join((tool.tool.title or tool.ref.name).split())) or tool.id,
            "description": _long_enough(description, tool),
        },
        "category": "capability",
        "implementation": {
            "type": "mcp_tool",
            "server": tool.ref.server,
            "tool": tool.ref.name,
        },
        "provenance": {"authored_by": "derived_from_template", "version": "1.0.0"},
    }
    return f"{_KEPT}\n{_yaml(document, flow=False)}"


def _long_enough(description: str, tool: NamedTool) -> str:
    """Return a description of ten characters at least, as SwarmKit wants it."""
    if len(description) >= SHORTEST_DESCRIPTION:
        return description
    return f"{description} (a tool of server {tool.ref.server})"


def topology_text(tools: Sequence[NamedTool]) -> str:
    """Return the topology whose only agent holds all skills, with a place for its order rules."""
    lines = [
        _KEPT,
        "apiVersion: swarmkit/v1",
        "kind: Topology",
        "metadata: {name: main, version: 1.0.0}",
        "agents:",
        "  root:",
        f"    id: {AGENT}",
        "    role: root",
        "    # Take out what the agent is not to have.",
        "    skills:",
    ]
    for server in dict.fromkeys(tool.ref.server for tool in tools):
        lines.append(f"      # {server}")
        held = [tool for tool in tools if tool.ref.server == server]
        width = max(len(_scalar(tool.id)) for tool in held)
        lines += [f"      - {_scalar(tool.id):<{width}}  # {_comment(tool)}" for tool in held]
    before, after = _pair(tools)
    lines += [
        "    # What must have succeeded before a skill may be called. Take the # away, and say it:",
        "    # requires:",
        f"    #   {after}: [{before}]",
    ]
    return "\n".join([*lines, ""])


def servers_text(servers: Iterable[ServerDefinition], directory: Path) -> str:
    """Return the items of `mcp_servers`."""
    return _yaml([_entry(server, directory) for server in servers], flow=True)


def _yaml(value: object, *, flow: bool) -> str:
    """Return a value as YAML, in the order of its keys.

    Args:
        flow: that what holds scalars alone stands on one line.
    """
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=96,
        default_flow_style=None if flow else False,
    )
    return text


def _scalar(text: str) -> str:
    """Return an id as a scalar of YAML, in quotes where YAML would read something else in it."""
    return _yaml([text], flow=False).removeprefix("- ").rstrip("\n")


def _comment(tool: NamedTool) -> str:
    text = tool.description
    return text if len(text) <= LONGEST_COMMENT else f"{text[: LONGEST_COMMENT - 1].rstrip()}…"


def _pair(tools: Sequence[NamedTool]) -> tuple[str, str]:
    """Return two skills for an example: of one server, where any has two."""
    for tool in tools:
        twins = [each for each in tools if each.ref.server == tool.ref.server]
        if len(twins) > 1:
            return _scalar(twins[0].id), _scalar(twins[1].id)
    names = [_scalar(tool.id) for tool in tools]
    return names[0], names[-1]
