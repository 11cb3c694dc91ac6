"""The skills that one agent holds: its own list, its archetype's, and what is added."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import final

from interceptors import SkillId
from seriatim.topology.definitions import BrokenSkill, Catalogue, Meaning, SkillDefinition
from seriatim.topology.fields import Fields
from seriatim.topology.models import Skill
from seriatim.topology.nodes import MapNode, Node, ScalarNode, kind_of
from seriatim.topology.problems import Location, Problem, error, suggestion, warning


@final
@dataclass(frozen=True, slots=True)
class Grant:
    """One skill that an agent holds, and the entry that gives it."""

    meaning: Meaning
    at: Location


@final
@dataclass(frozen=True, slots=True)
class Grants:
    """The skills that an agent holds, in order.

    Attributes:
        complete: whether these are all; not so when a bulk grant or the archetype is unknown, and
            a problem says so.
    """

    held: Mapping[SkillId, Grant]
    complete: bool

    def tools(self) -> tuple[Skill, ...]:
        """Return those that are tools."""
        return tuple(g.meaning for g in self.held.values() if isinstance(g.meaning, Skill))


def read_grants(sources: Iterable[tuple[Fields, str]], catalogue: Catalogue) -> Grants:
    """Return what the lists in these fields grant, each skill once."""
    held: dict[SkillId, Grant] = {}
    by_letters: dict[str, SkillId] = {}
    complete = True
    for fields, name in sources:
        for node in fields.items(name):
            for skill, grant in _granted(node, catalogue, fields.problems):
                like = by_letters.setdefault(skill.casefold(), skill)
                if like != skill and skill not in held:
                    fields.problems.append(_alike(skill, like, grant.at))
                held.setdefault(skill, grant)
            complete = complete and _understood(node, catalogue)
    return Grants(held, complete)


def _alike(skill: SkillId, like: SkillId, at: Location) -> Problem:
    message = f"`{skill}` and `{like}` differ only in capital letters"
    hint = "give one of them another id: some clients take them for one tool"
    return warning("agent.like-skills", message, at, hint)


def _understood(node: Node, catalogue: Catalogue) -> bool:
    """Whether it is known which ids an entry grants; each other entry names its own."""
    match node:
        case ScalarNode(_, _, str() as name) if name.startswith("server:"):
            return catalogue.skills.complete and name.removeprefix("server:") in (
                catalogue.servers.known
            )
        case _:
            return True


def _granted(
    node: Node, catalogue: Catalogue, problems: list[Problem]
) -> Iterable[tuple[SkillId, Grant]]:
    match node:
        case ScalarNode(at, _, str() as name) if name.startswith("server:"):
            yield from _bulk(name.removeprefix("server:"), at, catalogue, problems)
        case ScalarNode(_, _, str() as name) if name.startswith("pack:"):
            pass  # commands, which are none of our tools
        case ScalarNode(at, _, str() as name) if name:
            skill = SkillId(name)
            definition = catalogue.skills.known.get(skill) or _unknown(
                skill, at, catalogue, problems
            )
            yield skill, Grant(definition.meaning, at)
        case MapNode(at, entries) if "abstract" in entries:
            hint = "name a skill by its id if the agent needs a tool here"
            message = "an abstract skill is left out: nothing is put in its place"
            problems.append(warning("agent.abstract-skill", message, at, hint))
        case _:
            message = f"a skill is named by its id, and this is {kind_of(node)}"
            hint = "write the id of a skill; quote it where YAML reads something else in it"
            problems.append(error("agent.bad-skill-entry", message, node.at, hint))


def _unknown(
    skill: SkillId, at: Location, catalogue: Catalogue, problems: list[Problem]
) -> SkillDefinition:
    if catalogue.skills.complete:
        hint = suggestion(skill, catalogue.skills.known, "define the skill, or take the entry out")
        message = f"there is no skill `{skill}`"
        problems.append(error("agent.unknown-skill", message, at, hint))
    return SkillDefinition(BrokenSkill(), at, at)


def _bulk(
    server: str, at: Location, catalogue: Catalogue, problems: list[Problem]
) -> Iterable[tuple[SkillId, Grant]]:
    if server not in catalogue.servers.known and catalogue.servers.complete:
        hint = suggestion(
            server, catalogue.servers.known, "define the server, or take the entry out"
        )
        message = f"there is no server `{server}` whose skills could be granted"
        problems.append(error("agent.unknown-bulk-grant", message, at, hint))
    for name, definition in catalogue.skills.known.items():
        match definition.meaning:
            case Skill(tool=tool) if tool.server == server:
                yield SkillId(name), Grant(definition.meaning, at)
            case _:
                pass
