"""Takes the fields of a mapping as the types that they must have, noting where they have not."""

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from interceptors import JsonObject
from seriatim.topology.nodes import Entry, ListNode, MapNode, Node, ScalarNode, kind_of, plain
from seriatim.topology.problems import Location, Problem, error, listing, suggestion

Value = TypeVar("Value")

HIGHEST: Final = sys.float_info.max
"""Beyond it YAML's whole numbers are none that a clock can count."""


class Fields:
    """A mapping, and the list in which what is wrong with it is noted.

    A field that is absent, or empty, reads as the empty value of its type.
    """

    def __init__(self, node: MapNode, problems: list[Problem]) -> None:
        self.node: Final = node
        self.problems: Final = problems

    @property
    def at(self) -> Location:
        """Where the mapping stands."""
        return self.node.at

    def entries(self, name: str) -> tuple[Entry, ...]:
        """Return the field in a tuple of one, or nothing when it is absent or empty."""
        return tuple(entry for entry in self.written(name) if not _is_empty(entry.value))

    def written(self, name: str) -> tuple[Entry, ...]:
        """Return the field in a tuple of one, an empty one too, or nothing when it is absent."""
        entry = self.node.entries.get(name)
        return () if entry is None else (entry,)

    def place(self, name: str) -> Location:
        """Return where the field's value stands; for an absent field, where the mapping does."""
        return next((entry.value.at for entry in self.entries(name)), self.at)

    def mismatch(self, node: Node, name: str, wanted: str, hint: str) -> None:
        """Note that a value is not what the field takes."""
        message = f"`{name}` must be {wanted}, and is {kind_of(node)}"
        self.problems.append(error("schema.type-mismatch", message, node.at, hint))

    def text(self, name: str) -> str:
        """Return a field that holds a text."""
        for entry in self.entries(name):
            match entry.value:
                case ScalarNode(_, _, str() as value):
                    return value
                case node:
                    self.mismatch(node, name, "a text", "write a text; quote what YAML takes apart")
        return ""

    def required(self, name: str, owner: str) -> str:
        """Return a text that must be there, or `""` once its absence is noted."""
        before = len(self.problems)
        value = self.text(name)
        if not value and len(self.problems) == before:
            message = f"{owner} has no `{name}`"
            hint = f"add `{name}:` to it"
            self.problems.append(error("schema.required-field", message, self.at, hint))
        return value

    def any_text(self, name: str) -> str:
        """Return the text of a scalar as it was written, whatever YAML makes of it."""
        return next(iter(self._scalars(name, [e.value for e in self.entries(name)])), "")

    def items(self, name: str) -> tuple[Node, ...]:
        """Return the items of a field that holds a list."""
        for entry in self.entries(name):
            match entry.value:
                case ListNode(_, items):
                    return items
                case node:
                    self.mismatch(node, name, "a list", "write `[a, b]`, or one `- item` a line")
        return ()

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the items of a field that holds a list of scalars, as they were written."""
        return self._scalars(name, self.items(name))

    def _scalars(self, name: str, nodes: Sequence[Node]) -> tuple[str, ...]:
        texts = []
        for node in nodes:
            match node:
                case ScalarNode(_, text, _):
                    texts.append(text)
                case _:
                    self.mismatch(node, name, "text", "write texts here, no lists or mappings")
        return tuple(texts)

    def sections(self, name: str) -> "tuple[Fields, ...]":
        """Return the items of a field that holds a list of mappings."""
        sections = []
        for item in self.items(name):
            match item:
                case MapNode():
                    sections.append(Fields(item, self.problems))
                case _:
                    self.mismatch(item, name, "a list of mappings", "write `- id: ...` items")
        return tuple(sections)

    def section(self, name: str) -> "Fields":
        """Return a field that holds a mapping; without it, an empty one."""
        for entry in self.entries(name):
            match entry.value:
                case MapNode() as node:
                    return Fields(node, self.problems)
                case node:
                    self.mismatch(node, name, "a mapping", "write `key: value` lines under it")
        return Fields(MapNode(self.at, {}), self.problems)

    def table(self, name: str) -> Mapping[str, str]:
        """Return a field that holds a mapping of names to scalars, as they were written."""
        section = self.section(name)
        return {key: section.any_text(key) for key in section.node.entries}

    def json(self, name: str) -> JsonObject:
        """Return a field that holds a mapping of any values."""
        section = self.section(name)
        self._refuse_non_json(section.node)
        value = plain(section.node)
        return value if isinstance(value, dict) else {}

    def choice(self, name: str, values: Mapping[str, Value], default: Value) -> Value:
        """Return a field that holds one of the names in `values`."""
        for entry in self.entries(name):
            match entry.value:
                case ScalarNode(_, text, _) if text in values:
                    return values[text]
                case ScalarNode(at, text, _):
                    message = f"`{name}` may not be `{text}`"
                    hint = suggestion(text, values, f"it is one of {listing(values)}")
                    self.problems.append(error("schema.enum-mismatch", message, at, hint))
                case node:
                    self.mismatch(node, name, "a text", f"it is one of {listing(values)}")
        return default

    def positive(self, name: str, default: float) -> float:
        """Return a field that holds a number above zero."""
        for entry in self.entries(name):
            match entry.value:
                case ScalarNode(value=bool()) as node:
                    self.mismatch(node, name, "a number", "write a plain number")
                case ScalarNode(_, _, int() | float() as value) if 0 < value <= HIGHEST:
                    return float(value)
                case ScalarNode(at, text, int() | float()):
                    message = f"`{name}` must be above 0 and finite, and is `{text}`"
                    without = f" (then it is {default:g})" if default else ""
                    hint = f"give a number above 0, or take `{name}` out{without}"
                    self.problems.append(error("schema.bad-value", message, at, hint))
                case node:
                    self.mismatch(node, name, "a number", "write a plain number, without quotes")
        return default

    def number(self, name: str) -> float | None:
        """Return a field that holds a number, if it is there."""
        for entry in self.entries(name):
            match entry.value:
                case ScalarNode(_, _, int() | float() as value) if not isinstance(value, bool):
                    return value
                case node:
                    self.mismatch(node, name, "a number", "write a plain number, without quotes")
        return None

    def whole_number(self, name: str) -> int | None:
        """Return a field that holds a whole number, if it is there."""
        for entry in self.entries(name):
            match entry.value:
                case ScalarNode(_, _, int() as value) if not isinstance(value, bool):
                    return value
                case node:
                    self.mismatch(node, name, "a whole number", "write a plain whole number")
        return None

    def _refuse_non_json(self, node: Node) -> None:
        match node:
            case MapNode(_, entries):
                for entry in entries.values():
                    self._refuse_non_json(entry.value)
            case ListNode(_, items):
                for item in items:
                    self._refuse_non_json(item)
            case ScalarNode(at, text, float() as value) if not math.isfinite(value):
                message = f"`{text}` is no number that JSON can hold"
                hint = "give a finite number, or quote the text"
                self.problems.append(error("schema.bad-value", message, at, hint))
            case _:
                pass


def _is_empty(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.value is None
