"""A script: what the agents of a run say and do, turn by turn, written down beforehand."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias, TypeVar, final

from interceptors import AgentId, JsonObject, JsonValue
from seriatim.topology.nodes import ListNode, MapNode, Node, ScalarNode, kind_of, plain
from seriatim.topology.problems import Problem, by_place, error, listing, suggestion
from seriatim.topology.source import read


@final
@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A call of a skill, or of a child."""

    skill: str
    arguments: JsonObject


@final
@dataclass(frozen=True, slots=True)
class Calls:
    """A turn that calls, everything side by side."""

    calls: tuple[ScriptedCall, ...]


@final
@dataclass(frozen=True, slots=True)
class Say:
    """A turn that ends the task with a text."""

    text: str


@final
@dataclass(frozen=True, slots=True)
class Retry:
    """Does what the refusals of the last refused turn say, and repeats what was refused.

    Attributes:
        arguments: skill -> the arguments with which it is called on the way.
    """

    arguments: Mapping[str, JsonObject]


Turn: TypeAlias = Calls | Say | Retry

Script: TypeAlias = Mapping[AgentId, tuple[Turn, ...]]
"""The turns of each agent that has any."""

_Item = TypeVar("_Item")

_KEYS: Final = ("arguments", "calls", "retry", "say")
_FORMS: Final = "a turn is one of `calls: [...]`, `say: TEXT` or `retry: true`"


class ScriptError(Exception):
    """A script that cannot be played; nothing of it has been.

    Attributes:
        problems: all that is wrong with it, sorted by place.
    """

    def __init__(self, problems: Collection[Problem]) -> None:
        super().__init__(f"{len(problems)} problems")
        self.problems: Final = by_place(problems)


def read_script(file: Path, path: str, agents: Collection[AgentId]) -> Script:
    """Read a script for a topology with these agents.

    Args:
        path: the file's name in problems.

    Raises:
        ScriptError: when anything is wrong with it.
    """
    document = read(file, path)
    reading = _Reading(agents, list(document.problems))
    script = {
        AgentId(name): reading.turns(AgentId(name), entry.key, entry.value)
        for name, entry in document.root.entries.items()
    }
    if reading.problems:
        raise ScriptError(reading.problems)
    return script


class _Reading:
    """Makes turns of nodes, and notes what cannot be made anything of."""

    def __init__(self, agents: Collection[AgentId], problems: list[Problem]) -> None:
        self._agents: Final = agents
        self.problems: Final = problems

    def turns(self, agent: AgentId, key: ScalarNode, node: Node) -> tuple[Turn, ...]:
        if agent not in self._agents:
            hint = suggestion(agent, self._agents, f"its agents are {listing(self._agents)}")
            self._note(key, f"the topology has no agent `{agent}`", hint)
        return self._items(node, "the turns of an agent", self._turn)

    def _turn(self, node: Node) -> tuple[Turn, ...]:
        if not isinstance(node, MapNode):
            return self._note(node, f"a turn is a mapping, not {kind_of(node)}", _FORMS)
        match sorted(node.entries):
            case ["calls"]:
                calls = node.entries["calls"].value
                if isinstance(calls, ListNode) and not calls.items:
                    return self._note(calls, "`calls` is empty", "name a call, or `say` something")
                return (Calls(self._items(calls, "`calls`", self._call)),)
            case ["say"]:
                text = node.entries["say"].value
                if not isinstance(text, ScalarNode):
                    return self._note(text, f"`say` is a text, not {kind_of(text)}", _FORMS)
                return (Say(text.text),)
            case ["retry"] | ["arguments", "retry"]:
                return self._retry(node)
            case []:
                return self._note(node, "a turn is empty", _FORMS)
            case names if unknown := [name for name in names if name not in _KEYS]:
                for name in unknown:
                    self._note(node.entries[name].key, f"a turn has no `{name}`", _FORMS)
                return ()
            case names:
                message = f"{listing(names)} cannot stand together in one turn"
                return self._note(node, message, _FORMS)

    def _retry(self, node: MapNode) -> tuple[Turn, ...]:
        asked = node.entries["retry"].value
        if not (isinstance(asked, ScalarNode) and asked.value is True):
            return self._note(asked, "`retry` is always `true`", _FORMS)
        if "arguments" not in node.entries:
            return (Retry({}),)
        arguments = node.entries["arguments"].value
        if not isinstance(arguments, MapNode):
            message = f"`arguments` is a mapping from skills, not {kind_of(arguments)}"
            return self._note(arguments, message, "write `arguments: {skill: {name: value}}`")
        per_skill = {
            skill: self._object(entry.value, f"the arguments of `{skill}`")
            for skill, entry in arguments.entries.items()
        }
        return (Retry(per_skill),)

    def _call(self, node: Node) -> tuple[ScriptedCall, ...]:
        hint = "write `{skill: ID, arguments: {name: value}}`"
        if not isinstance(node, MapNode):
            return self._note(node, f"a call is a mapping, not {kind_of(node)}", hint)
        for name, entry in node.entries.items():
            if name not in ("skill", "arguments"):
                self._note(entry.key, f"a call has no `{name}`", hint)
        if "skill" not in node.entries:
            return self._note(node, "a call needs a `skill`", hint)
        skill = node.entries["skill"].value
        if not (isinstance(skill, ScalarNode) and skill.text):
            return self._note(skill, f"`skill` is the id of a skill, not {kind_of(skill)}", hint)
        if "arguments" not in node.entries:
            return (ScriptedCall(skill.text, {}),)
        arguments = self._object(node.entries["arguments"].value, "`arguments`")
        return (ScriptedCall(skill.text, arguments),)

    def _object(self, node: Node, what: str) -> JsonObject:
        if isinstance(node, MapNode):
            values: dict[str, JsonValue] = {
                name: plain(entry.value) for name, entry in node.entries.items()
            }
            return values
        self._note(node, f"{what} is a mapping, not {kind_of(node)}", "write `{name: value}`")
        return {}

    def _items(
        self, node: Node, what: str, read_item: Callable[[Node], tuple[_Item, ...]]
    ) -> tuple[_Item, ...]:
        """Return what `read_item` makes of each item of a list."""
        if not isinstance(node, ListNode):
            self._note(
                node, f"{what} is a list, not {kind_of(node)}", "write `[...]`, or `- ` lines"
            )
            return ()
        return tuple(made for item in node.items for made in read_item(item))

    def _note(self, node: Node, message: str, hint: str) -> tuple[()]:
        self.problems.append(error("schema.bad-value", message, node.at, hint))
        return ()
