"""What a server lists: its tools when the run began, and now."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, final

from seriatim.runtime.servers.session import ListedTool

ASPECTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "title": "title",
        "description": "description",
        "inputSchema": "input schema",
        "outputSchema": "output schema",
        "annotations": "annotations",
    }
)
"""What a model reads of a tool, or a policy judges by: the fields of its definition, named."""

NO_TOOLS: Final[Mapping[str, ListedTool]] = MappingProxyType({})

Definition = Mapping[str, Any]
"""The aspects that a tool has; none for a tool that is not listed."""


@final
@dataclass(frozen=True, slots=True)
class ToolChange:
    """A tool is defined otherwise than it was before.

    Attributes:
        before: its aspects as they were; empty for a tool that was not listed.
        after: its aspects as they are; empty for a tool that is not listed any more.
    """

    tool: str
    before: Definition
    after: Definition

    @property
    def what(self) -> str:
        """What changed, as a clause about the tool."""
        if not self.after:
            return "is not listed any more"
        if not self.before:
            return "is listed again, or for the first time"
        names = [
            name
            for field, name in ASPECTS.items()
            if not _same(self.before.get(field), self.after.get(field))
        ]
        return f"has another {', '.join(names)}"


class Listing:
    """The tools of one server."""

    def __init__(self) -> None:
        self.edition = 0
        """Grows with each change; 0 for a server that has never listed its tools."""
        self.tools: Mapping[str, ListedTool] = NO_TOOLS
        """As the server listed them last; they stay while it is away."""
        self._first: Mapping[str, ListedTool] = NO_TOOLS

    def update(self, tools: Mapping[str, ListedTool]) -> tuple[ToolChange, ...]:
        """Take what the server lists now, and return what changed; nothing when it is the first."""
        before, self.tools = self.tools, tools
        if not self.edition:
            self.edition, self._first = 1, tools
            return ()
        changes = tuple(
            ToolChange(name, _definition(before, name), _definition(tools, name))
            for name in {**before, **tools}
            if not _same(_definition(before, name), _definition(tools, name))
        )
        self.edition += bool(changes)
        return changes

    def differs(self, tool: str) -> bool:
        """Return whether a tool is defined otherwise than when it was listed first."""
        return not _same(_definition(self._first, tool), _definition(self.tools, tool))


def _definition(tools: Mapping[str, ListedTool], name: str) -> Definition:
    if name not in tools:
        return {}
    written = tools[name].on_the_wire()
    return {field: written[field] for field in ASPECTS if written.get(field) is not None}


def _same(one: object, other: object) -> bool:
    """Return whether two values are the same JSON, in which `true` is not 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
