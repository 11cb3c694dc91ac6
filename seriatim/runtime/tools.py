"""The tools that an agent sees, the same under both executors."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, Protocol

from seriatim.runtime.run import Run
from seriatim.runtime.servers.session import ListedTool
from seriatim.topology.models import Agent, Skill

ANY_OBJECT: Final[Mapping[str, Any]] = {"type": "object"}
"""The input schema of a tool that its server does not list: the server will judge the arguments."""


_UNLISTED: Final = ListedTool.model_validate({"name": "unlisted", "inputSchema": ANY_OBJECT})


class Listings(Protocol):
    """Knows what servers list; `RunningServers` does."""

    @property
    def edition(self) -> int:
        """Another number whenever a server lists something else."""
        ...

    def tools(self, server: str) -> Mapping[str, ListedTool]:
        """Return a server's tools by name; none for one that is not available."""
        ...


def advertised_tools(run: Run, agent: Agent) -> tuple[ListedTool, ...]:
    """Return the tools of an agent in a run; see `tools_of`."""
    return tools_of(run.servers, agent.skills)


def tools_of(servers: Listings, skills: Iterable[Skill]) -> tuple[ListedTool, ...]:
    """Return one tool for each skill, under the skill's id and in the order of the skills.

    Everything else is as the server says, except that arguments which the skill fixes are left out
    of the input schema. A tool that its server does not list, because it is not available or does
    not know it, has the skill's description, and takes any object.
    """
    return tuple(_advertised(servers, skill) for skill in skills)


def _advertised(servers: Listings, skill: Skill) -> ListedTool:
    listed = servers.tools(skill.tool.server).get(skill.tool.name, _UNLISTED)
    changes: dict[str, Any] = {"name": skill.id}
    if not listed.description:
        changes["description"] = skill.description
    if skill.fixed:
        changes["inputSchema"] = _without(listed.input_schema, skill.fixed.keys())
    return listed.changed(changes)


def _without(schema: Mapping[str, Any], fixed: Collection[str]) -> dict[str, Any]:
    """Return an object schema that does not ask for the arguments `fixed`."""
    open_schema = dict(schema)
    if isinstance(properties := schema.get("properties"), Mapping):
        open_schema["properties"] = {
            name: value for name, value in properties.items() if name not in fixed
        }
    if isinstance(required := schema.get("required"), list):
        open_schema["required"] = [name for name in required if name not in fixed]
        if not open_schema["required"]:
            # Older drafts of JSON Schema forbid an empty list.
            del open_schema["required"]
    return open_schema
