"""The tools that an agent sees, the same under both executors."""

from collections.abc import Collection, Mapping
from typing import Any, Final

import mcp_types

from seriatim.runtime.run import Run
from seriatim.topology.models import Agent, Skill

ANY_OBJECT: Final[Mapping[str, Any]] = {"type": "object"}
"""The input schema of a tool that its server does not list: the server will judge the arguments."""


def advertised_tools(run: Run, agent: Agent) -> tuple[mcp_types.Tool, ...]:
    """Return one tool for each skill of the agent, under the skill's id and in the skills' order.

    Everything else is as the server says, except that arguments which the skill fixes are left out
    of the input schema. A tool that its server does not list, because it is not available or does
    not know it, has the skill's description, and takes any object.
    """
    return tuple(_advertised(run, skill) for skill in agent.skills)


def _advertised(run: Run, skill: Skill) -> mcp_types.Tool:
    listed = run.servers.tools(skill.tool.server).get(skill.tool.name)
    if listed is None:
        return mcp_types.Tool(
            name=skill.id, description=skill.description, input_schema=dict(ANY_OBJECT)
        )
    return listed.model_copy(
        update={
            "name": skill.id,
            "description": listed.description or skill.description,
            "input_schema": _without(listed.input_schema, skill.fixed.keys()),
        }
    )


def _without(schema: Mapping[str, Any], fixed: Collection[str]) -> dict[str, Any]:
    """Return an object schema that does not ask for the arguments `fixed`."""
    open_schema = dict(schema)
    if not fixed:
        return open_schema
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
