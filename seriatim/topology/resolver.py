"""From a path to a resolved workspace, or to all that keeps it from being one."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias, final

from interceptors import AgentId, SkillId
from seriatim.topology.agents import AgentReader
from seriatim.topology.definitions import (
    Catalogue,
    read_archetypes,
    read_servers,
    read_skills,
    refuse_requires,
)
from seriatim.topology.fields import Fields
from seriatim.topology.layout import Layout, find
from seriatim.topology.models import Agent, Skill, Topology, Workspace
from seriatim.topology.problems import (
    Location,
    Problem,
    Related,
    Severity,
    by_place,
    error,
    suggestion,
    warning,
)
from seriatim.topology.settings import read_settings


@final
@dataclass(frozen=True, slots=True)
class Sound:
    """A workspace that can be run.

    Attributes:
        problems: warnings only, sorted by place.
        files: how many were read.
    """

    workspace: Workspace
    problems: tuple[Problem, ...]
    files: int


@final
@dataclass(frozen=True, slots=True)
class Broken:
    """What keeps a workspace from being run, and its warnings; sorted by place."""

    problems: tuple[Problem, ...]
    files: int


Loaded: TypeAlias = Sound | Broken
"""What became of a workspace that was read."""


class TopologyProblemsError(Exception):
    """The workspace has problems of severity `error`.

    Attributes:
        problems: all of them, warnings included, sorted by place.
    """

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        first = next(p for p in problems if p.severity is Severity.ERROR)
        place = f"{first.at.path}:{first.at.line}:{first.at.column}"
        super().__init__(f"{place}: {first.code}: {first.message}")
        self.problems: Final = problems


def load_workspace(path: Path) -> Workspace:
    """Return the workspace at `path`: a directory, or one file.

    Raises:
        NothingToValidateError: when there is no workspace.
        TopologyProblemsError: when it has errors; warnings are passed over.
    """
    match load(path):
        case Sound(workspace):
            return workspace
        case Broken(problems):
            raise TopologyProblemsError(problems)


def load(path: Path) -> Loaded:
    """Read and check the workspace at `path`, all of it, whatever is wrong with parts.

    Raises:
        NothingToValidateError: when there is no workspace.
    """
    layout = find(path)
    catalogue = _catalogue(layout)
    refuse_requires(layout.top)
    topologies = _topologies(layout, catalogue)
    used = {
        skill.id
        for topology in topologies
        for _, agent in _by_id(topology.root)
        for skill in agent.skills
    }
    _check_servers(layout, catalogue, used)
    agents = {agent for topology in topologies for agent in topology.agents}
    settings = read_settings(layout.settings, agents)
    name = layout.top.section("metadata").text("id") or layout.name
    problems = by_place(layout.problems)
    if any(problem.severity is Severity.ERROR for problem in problems):
        return Broken(problems, layout.files)
    workspace = Workspace(
        directory=layout.directory,
        id=name,
        topologies={topology.name: topology for topology in topologies},
        servers=catalogue.servers.known,
        settings=settings,
    )
    return Sound(workspace, problems, layout.files)


def _catalogue(layout: Layout) -> Catalogue:
    return Catalogue(
        read_servers(layout.top, layout.directory, whole=layout.whole),
        read_skills(layout.skills.sections, whole=layout.skills.whole),
        read_archetypes(layout.archetypes.sections, whole=layout.archetypes.whole),
    )


def _topologies(layout: Layout, catalogue: Catalogue) -> list[Topology]:
    topologies = []
    places: dict[str, Location] = {}
    for found in layout.topologies:
        metadata = found.fields.section("metadata")
        name = metadata.text("name") or found.fields.text("name") or found.name
        at = metadata.place("name") if metadata.entries("name") else found.fields.place("name")
        if name in places:
            message = f"the topology name `{name}` is taken"
            first = Related(f"`{name}` is defined here first", places[name])
            hint = "give one of the two another name"
            problem = error("topology.duplicate-id", message, at, hint, first)
            layout.problems.append(problem)
        places.setdefault(name, at)
        refuse_requires(found.fields, metadata)
        root = _root(found.fields)
        if root.node.entries:
            agent = AgentReader(catalogue).read(root, "root")
            topologies.append(Topology(name, agent, dict(_by_id(agent))))
    return topologies


def _root(topology: Fields) -> Fields:
    """Return the node of the first agent; one without entries, once its absence is noted."""
    noted = len(topology.problems)
    agents = topology.section("agents")
    refuse_requires(agents)
    root = agents.section("root")
    if not root.node.entries and len(topology.problems) == noted:
        message = "the topology has no `agents: {root: ...}`"
        hint = "put its first agent under `agents: root:`"
        topology.problems.append(error("schema.required-field", message, agents.at, hint))
    return root


def _by_id(agent: Agent) -> Iterator[tuple[AgentId, Agent]]:
    yield agent.id, agent
    for child in agent.children:
        yield from _by_id(child)


def _check_servers(layout: Layout, catalogue: Catalogue, used: Collection[SkillId]) -> None:
    """Note each skill on a server that nobody defines; a warning when no agent holds it."""
    if not catalogue.servers.complete:
        return
    # Through an archetype that is unknown an agent may have held any skill: what is not used
    # cannot be told, and the archetype is what is wrong.
    certain = all(problem.code != "agent.unknown-archetype" for problem in layout.problems)
    known = catalogue.servers.known
    for definition in catalogue.skills.known.values():
        match definition.meaning:
            case Skill(id=name, tool=tool) if tool.server not in known and (
                name in used or certain
            ):
                report = error if name in used else warning
                message = f"skill `{name}` is on server `{tool.server}`, which is not defined"
                hint = suggestion(tool.server, known, "define it under `mcp_servers`")
                at = definition.server_at
                layout.problems.append(report("skill.unknown-server", message, at, hint))
            case _:
                pass
