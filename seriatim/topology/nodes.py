"""YAML as a tree that knows where each of its nodes was written."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, assert_never, final

from interceptors import JsonValue
from seriatim.topology.problems import Location


@final
@dataclass(frozen=True, slots=True, eq=False)
class ScalarNode:
    """A single value.

    Attributes:
        text: as it was written, quotes and escapes worked in.
        value: what YAML makes of the text (`no` is false, `1.0` a number).
    """

    at: Location
    text: str
    value: str | int | float | bool | None


@final
@dataclass(frozen=True, slots=True, eq=False)
class ListNode:
    """A sequence."""

    at: Location
    items: "tuple[Node, ...]"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One key of a mapping, and what stands under it."""

    key: ScalarNode
    value: "Node"


@final
@dataclass(frozen=True, slots=True, eq=False)
class MapNode:
    """A mapping; its entries stand in the order written, under the texts of their keys."""

    at: Location
    entries: Mapping[str, Entry]


Node: TypeAlias = ScalarNode | ListNode | MapNode
"""Any node of a document."""


def kind_of(node: Node) -> str:
    """Return what a node is, as a text names it (`a list`)."""
    match node:
        case MapNode():
            return "a mapping"
        case ListNode():
            return "a list"
        case ScalarNode(value=None):
            return "nothing"
        case ScalarNode(value=bool()):
            return "a boolean"
        case ScalarNode(value=int() | float()):
            return "a number"
        case ScalarNode():
            return "a string"
        case _:
            assert_never(node)


def plain(node: Node) -> JsonValue:
    """Return the values of a node without their places."""
    match node:
        case MapNode(_, entries):
            return {name: plain(entry.value) for name, entry in entries.items()}
        case ListNode(_, items):
            return [plain(item) for item in items]
        case ScalarNode(_, _, value):
            return value
        case _:
            assert_never(node)
