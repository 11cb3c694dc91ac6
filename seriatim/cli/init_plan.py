"""What `init` writes, and what it leaves to a person: worked out before anything is written."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

import mcp_types

from interceptors import ToolRef
from seriatim.cli.init_files import NamedTool, skill_text, topology_text, workspace_text
from seriatim.cli.init_names import skill_ids
from seriatim.cli.init_present import Present
from seriatim.cli.init_source import Source
from seriatim.topology import ServerDefinition


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be written, and what is to be said.

    Attributes:
        files: those to write, none of which is there; the topology last, since it names the rest.
        new: tools that get a skill.
        ungranted: those of `new` that no agent holds, since the topology is a person's by now.
        undefined: servers of the client that the workspace, a person's by now, does not define.
        gone: skills whose server has their tool no more.
    """

    files: Mapping[Path, str]
    new: tuple[NamedTool, ...]
    ungranted: tuple[NamedTool, ...]
    undefined: tuple[ServerDefinition, ...]
    gone: Mapping[str, ToolRef]


def plan_files(
    directory: Path,
    source: Source,
    present: Present,
    listed: Mapping[str, Mapping[str, mcp_types.Tool]],
) -> Plan:
    """Return what to do for a directory.

    Args:
        listed: the tools of each server that answered, by name.
    """
    undefined = tuple(
        server
        for server in source.servers
        if present.has_workspace and server.id not in present.servers
    )
    left_alone = {server.id for server in undefined}
    tools = {
        ToolRef(server, name): tool
        for server, by_name in listed.items()
        if server not in left_alone
        for name, tool in by_name.items()
        if name
    }
    stems = {file.stem for file in (directory / "skills").glob("*.y*ml")}
    fresh = skill_ids(list(tools), present.skills, present.ids | stems)
    ids = {**present.skills, **fresh}
    named = [NamedTool(ids[ref], ref, tool) for ref, tool in tools.items()]
    new = tuple(tool for tool in named if tool.ref in fresh)
    files: dict[Path, str] = {}
    if not present.has_workspace and named:
        variables = source.variables.all
        files[directory / "workspace.yaml"] = workspace_text(directory, source.servers, variables)
    files |= {directory / "skills" / f"{tool.id}.yaml": skill_text(tool) for tool in new}
    if not present.has_topology and named:
        files[directory / "topologies" / "main.yaml"] = topology_text(named)
    gone = {
        id_: ref
        for ref, id_ in present.skills.items()
        if ref.server in listed and ref.name not in listed[ref.server]
    }
    return Plan(files, new, new if present.has_topology else (), undefined, gone)
