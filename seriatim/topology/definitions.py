"""What a workspace defines for its agents to use: servers, skills and archetypes."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeAlias, TypeVar, final

from interceptors import DEFAULT_TIMEOUT, SkillId, Tier, ToolRef
from seriatim.topology.fields import Fields
from seriatim.topology.models import (
    Effect,
    HttpTransport,
    ServerDefinition,
    Skill,
    StdioTransport,
    Transport,
)
from seriatim.topology.problems import Code, Location, Related, error, warning

Definition = TypeVar("Definition")

TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
"""Names under which model providers let a tool be advertised."""

_TIERS: Final = {tier.value: tier for tier in Tier}
_EFFECTS: Final = {effect.value: effect for effect in (Effect.READ, Effect.WRITE)}
_TRANSPORTS: Final = {"stdio": "stdio", "http": "http"}


@final
@dataclass(frozen=True, slots=True)
class ForeignSkill:
    """A skill of a type that we do not run, such as `llm_prompt`."""

    type: str


@final
@dataclass(frozen=True, slots=True)
class BrokenSkill:
    """A skill whose definition has problems, which have been noted."""


Meaning: TypeAlias = Skill | ForeignSkill | BrokenSkill
"""What stands behind a skill id."""


@final
@dataclass(frozen=True, slots=True)
class SkillDefinition:
    """A skill, where its id was written, and where the server that it names."""

    meaning: Meaning
    at: Location
    server_at: Location


@final
@dataclass(frozen=True, slots=True)
class Archetype:
    """What agents may inherit.

    Attributes:
        whole: the archetype with everything in it.
        defaults: the part that agents inherit.
    """

    description: str
    whole: Fields
    defaults: Fields
    at: Location


@final
@dataclass(frozen=True, slots=True)
class Shelf(Generic[Definition]):
    """The definitions of one kind, by id.

    Attributes:
        complete: whether the id of every definition could be read, so that a name that is absent
            is unknown indeed.
    """

    known: Mapping[str, Definition]
    complete: bool


@final
@dataclass(frozen=True, slots=True)
class Catalogue:
    """The definitions of a workspace."""

    servers: Shelf[ServerDefinition]
    skills: Shelf[SkillDefinition]
    archetypes: Shelf[Archetype]


def read_servers(fields: Fields, directory: Path, *, whole: bool) -> Shelf[ServerDefinition]:
    """Return the servers that `mcp_servers` defines; `whole` says that there can be no others."""
    servers: dict[str, ServerDefinition] = {}
    places: dict[str, Location] = {}
    noted = len(fields.problems)
    sections = fields.sections("mcp_servers")
    complete = whole and len(fields.problems) == noted
    for section in sections:
        name = section.required("id", "this server")
        complete = complete and bool(name)
        if not name or _taken("server.duplicate-id", "server", name, section, places):
            continue
        overrides = section.section("permission_overrides")
        effects = section.section("effects")
        servers[name] = ServerDefinition(
            id=name,
            transport=_transport(section, directory),
            tier=section.choice("permission", _TIERS, Tier.CAUTIOUS),
            tool_tiers={
                tool: overrides.choice(tool, _TIERS, Tier.CAUTIOUS)
                for tool in overrides.node.entries
            },
            effects={
                tool: effects.choice(tool, _EFFECTS, Effect.UNDECLARED)
                for tool in effects.node.entries
            },
        )
    return Shelf(servers, complete)


def read_skills(sources: Iterable[Fields], *, whole: bool) -> Shelf[SkillDefinition]:
    """Return the skills that these mappings define, in SwarmKit's shape or our concise one.

    Args:
        whole: that there can be no others.
    """
    skills: dict[str, SkillDefinition] = {}
    complete = whole
    places: dict[str, Location] = {}
    for fields in sources:
        identity = fields.section("metadata") if fields.entries("metadata") else fields
        name = SkillId(identity.required("id", "this skill"))
        complete = complete and bool(name)
        if not name or _taken("skill.duplicate-id", "skill", name, identity, places):
            continue
        inline = not fields.entries("implementation")
        implementation = fields if inline else fields.section("implementation")
        refuse_requires(fields, identity, implementation)
        skills[name] = SkillDefinition(
            _meaning(name, fields, identity, implementation),
            identity.place("id"),
            implementation.place("server"),
        )
    return Shelf(skills, complete)


def read_archetypes(sources: Iterable[Fields], *, whole: bool) -> Shelf[Archetype]:
    """Return the archetypes that these mappings define; `whole` as for skills."""
    archetypes: dict[str, Archetype] = {}
    complete = whole
    places: dict[str, Location] = {}
    for fields in sources:
        identity = fields.section("metadata") if fields.entries("metadata") else fields
        name = identity.required("id", "this archetype")
        complete = complete and bool(name)
        if not name or _taken("archetype.duplicate-id", "archetype", name, identity, places):
            continue
        defaults = fields.section("defaults") if fields.entries("defaults") else fields
        refuse_requires(fields, identity, defaults)
        description = identity.text("description") or identity.text("name")
        archetypes[name] = Archetype(description, fields, defaults, identity.place("id"))
    return Shelf(archetypes, complete)


def refuse_requires(*sections: Fields) -> None:
    """Note each `requires` in sections that are no agent node."""
    for section in sections:
        for entry in section.entries("requires"):
            message = "`requires` orders nothing here: only an agent has order rules"
            hint = "move it to the agent in the topology, beside its `skills`"
            section.problems.append(error("agent.requires-misplaced", message, entry.key.at, hint))


def _taken(
    code: Code, owner: str, name: str, identity: Fields, places: dict[str, Location]
) -> bool:
    """Note an id that is there already; otherwise keep its place."""
    at = identity.place("id")
    if name not in places:
        places[name] = at
        return False
    message = f"the {owner} id `{name}` is taken"
    first = Related(f"`{name}` is defined here first", places[name])
    identity.problems.append(error(code, message, at, "give one of the two another id", first))
    return True


def _meaning(name: SkillId, fields: Fields, identity: Fields, implementation: Fields) -> Meaning:
    """Return what a skill stands for."""
    inline = implementation is fields
    kind = "mcp_tool" if inline else implementation.required("type", f"skill `{name}`")
    if kind != "mcp_tool":
        return ForeignSkill(kind) if kind else BrokenSkill()
    noted = len(fields.problems)
    server = implementation.required("server", f"skill `{name}`")
    tool = implementation.required("tool", f"skill `{name}`")
    constraints = fields.section("constraints")
    timeout = constraints.positive("timeout_seconds", DEFAULT_TIMEOUT)
    if not TOOL_NAME.fullmatch(name):
        message = f"`{name}` cannot be the name of a tool"
        hint = "use letters, digits, `-` and `_`, at most 128 of them"
        fields.problems.append(error("skill.bad-id", message, identity.place("id"), hint))
    skill = Skill(
        id=name,
        description=identity.text("description") or identity.text("name"),
        tool=ToolRef(server, tool),
        fixed=implementation.json("arguments"),
        required_scopes=frozenset(fields.section("iam").texts("required_scopes")),
        timeout=timeout,
        redact=frozenset(fields.section("audit").texts("redact")),
    )
    broken = len(fields.problems) > noted
    for entry in constraints.entries("retry"):
        message = f"`retry` of skill `{name}` is ignored: a call is sent once"
        hint = "take it out; an agent that sees a failure may call again"
        fields.problems.append(warning("skill.retry-ignored", message, entry.key.at, hint))
    return BrokenSkill() if broken else skill


def _transport(section: Fields, directory: Path) -> Transport:
    guess = "http" if section.entries("endpoint") else "stdio"
    name = section.any_text("id")
    if section.choice("transport", _TRANSPORTS, guess) == "http":
        endpoint = section.required("endpoint", f"server `{name}`")
        return HttpTransport(endpoint, section.table("headers"))
    noted = len(section.problems)
    command = section.texts("command")
    if not command and len(section.problems) == noted:
        message = f"server `{name}` has neither a `command` nor an `endpoint`"
        hint = "add `command: [PROGRAM, ARGUMENT]`, or `endpoint: URL`"
        at = section.place("command")
        section.problems.append(error("schema.required-field", message, at, hint))
    return StdioTransport(command, section.table("env"), _start(section.any_text("cwd"), directory))


def _start(cwd: str, directory: Path) -> str:
    """Return where a server starts; what begins with a variable is left for when it is known."""
    return cwd if cwd.startswith("${") else str(directory / cwd)
