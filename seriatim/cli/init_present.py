"""What a directory holds of a workspace before `init` writes into it."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from interceptors import ToolRef
from seriatim.cli.paint import paint_for
from seriatim.cli.voice import FAILED, say, stop
from seriatim.topology import (
    Broken,
    NothingToValidateError,
    ServerDefinition,
    Skill,
    as_text,
    load,
)
from seriatim.topology.definitions import read_skills
from seriatim.topology.layout import find


@final
@dataclass(frozen=True, slots=True)
class Present:
    """A workspace that is there, or `NOTHING`.

    Attributes:
        skills: the ids of its skills, by the tool.
        ids: all ids of its skills.
        has_topology: whether it has any.
    """

    servers: Mapping[str, ServerDefinition]
    skills: Mapping[ToolRef, str]
    ids: frozenset[str]
    has_workspace: bool
    has_topology: bool


NOTHING: Final = Present({}, {}, frozenset(), has_workspace=False, has_topology=False)


def present_in(directory: Path) -> Present:
    """Return the workspace in a directory; leaves when there is one that has errors."""
    try:
        loaded = load(directory)
        layout = find(directory)
    except NothingToValidateError:
        return NOTHING
    if isinstance(loaded, Broken):
        say(f"{as_text(loaded.problems, paint_for(sys.stderr))}\n")
        stop(
            f"the workspace in `{directory}` has errors",
            hint="correct them, or give another directory with `--out`",
            code=FAILED,
        )
    known = read_skills(layout.skills.sections, whole=layout.skills.whole).known
    meanings = {id_: definition.meaning for id_, definition in known.items()}
    return Present(
        servers=loaded.workspace.servers,
        skills={
            meaning.tool: id_ for id_, meaning in meanings.items() if isinstance(meaning, Skill)
        },
        ids=frozenset(known),
        has_workspace=True,
        has_topology=bool(loaded.workspace.topologies),
    )
