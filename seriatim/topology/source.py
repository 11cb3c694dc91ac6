"""Reads a YAML file with the place of everything in it.

A document is composed, not loaded: loading forgets places, and silently keeps the last of two equal
keys.
"""

import codecs
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn, final

import yaml
from yaml.constructor import SafeConstructor
from yaml.reader import Reader

from seriatim.topology.nodes import Entry, ListNode, MapNode, Node, ScalarNode, kind_of
from seriatim.topology.problems import Code, Location, Problem, Related, error

DEEPEST: Final = 100
"""Levels of nesting that are read; no topology needs a tenth of them."""

LARGEST: Final = 1_000_000
"""Nodes that a document may have once its aliases are written out."""

_LOADER: Final = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
_LINE_BREAK: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_MERGE: Final = "tag:yaml.org,2002:merge"
_TYPED: Final = {
    "tag:yaml.org,2002:null": SafeConstructor.construct_yaml_null,
    "tag:yaml.org,2002:bool": SafeConstructor.construct_yaml_bool,
    "tag:yaml.org,2002:int": SafeConstructor.construct_yaml_int,
    "tag:yaml.org,2002:float": SafeConstructor.construct_yaml_float,
}


@final
@dataclass(frozen=True, slots=True)
class Document:
    """One file.

    Attributes:
        path: as problems name it.
        root: the mapping at its top; empty when the file holds none.
        whole: whether `root` is all that the file says.
        problems: what was wrong with the file as YAML.
    """

    path: str
    root: MapNode
    whole: bool
    problems: tuple[Problem, ...]

    @property
    def blank(self) -> bool:
        """Whether the file says nothing at all."""
        return self.whole and not self.root.entries


def read(file: Path, path: str) -> Document:
    """Read a file that problems call `path`; whatever is wrong is a problem, never raised."""
    try:
        content = file.read_bytes()
    except OSError as fault:
        start = Location(path, 1, 1, "", "", 0)
        reason = (fault.strerror or type(fault).__name__).lower()
        hint = "make the file readable, or take it out of the workspace"
        problem = error("workspace.unreadable", f"cannot read the file: {reason}", start, hint)
        return Document(path, MapNode(start, {}), whole=False, problems=(problem,))
    return parse(content, path)


def parse(content: bytes, path: str) -> Document:
    """Read the content of a file; see `read`."""
    utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding = "utf-16" if utf16 else "utf-8-sig"
    text = content.decode(encoding, errors="replace")
    lines = _LINE_BREAK.split(text)
    composition = _Composition(path, lines)
    try:
        content.decode(encoding)
    except UnicodeDecodeError as fault:
        before = content[: fault.start].decode(encoding, errors="replace")
        composition.misread("the file is not UTF-8 text", *_end(before), "save the file as UTF-8")
    else:
        composition.compose(text)
    return composition.document()


def _end(text: str) -> tuple[int, int]:
    """Return the line and the column, from 0, at which a text ends."""
    lines = _LINE_BREAK.split(text)
    return len(lines) - 1, len(lines[-1])


class _Stop(Exception):  # noqa: N818  not a fault: it ends the reading once a problem is noted
    """Nothing further can be made of the document."""


class _Composition:
    """The reading of one document."""

    def __init__(self, path: str, lines: list[str]) -> None:
        self._path: Final = path
        self._lines: Final = lines
        self._problems: Final[list[Problem]] = []
        self._known: Final[dict[int, Node]] = {}
        self._sizes: Final[dict[int, int]] = {}
        self._top: Node = MapNode(self._location(0, 0, 0, ""), {})
        self._whole = True

    def document(self) -> Document:
        """Return what was read."""
        match self._top:
            case MapNode() as root:
                return Document(self._path, root, self._whole, tuple(self._problems))
            case ScalarNode(value=None):
                pass
            case node:
                hint = "begin the file with `key: value` lines"
                message = f"the file holds {kind_of(node)}, not a mapping"
                self._problems.append(error("workspace.malformed", message, node.at, hint))
                self._whole = False
        root = MapNode(self._location(0, 0, 0, ""), {})
        return Document(self._path, root, self._whole, tuple(self._problems))

    def compose(self, text: str) -> None:
        """Read the text, noting what is wrong with it."""
        if unprintable := Reader.NON_PRINTABLE.search(text):
            message = f"the character U+{ord(unprintable.group()):04X} may not stand in YAML"
            self.misread(message, *_end(text[: unprintable.start()]), "take the character out")
            return
        try:
            raw = yaml.compose(text, Loader=_LOADER)
            if raw is not None:
                self._top = self._node(raw, "", 0)
        except yaml.MarkedYAMLError as fault:
            self._explain(fault)
        except yaml.YAMLError as fault:
            self.misread(" ".join(str(fault).split()), 0, 0, "write the file as plain YAML")
        except RecursionError:
            # Only PyYAML's own parser, which stands in where libyaml is missing, recurses so far.
            self.misread("the file is nested too deeply", 0, 0, "write it flatter")
        except _Stop:
            self._whole = False

    def misread(self, message: str, line: int, column: int, hint: str) -> None:
        """Note that the file is no YAML from this place on; lines and columns count from 0."""
        at = self._location(line, column, 1, "")
        self._problems.append(error("workspace.yaml-parse", message, at, hint))
        self._whole = False

    def _explain(self, fault: yaml.MarkedYAMLError) -> None:
        mark = fault.problem_mark or fault.context_mark
        line, column = (mark.line, mark.column) if mark else (0, 0)
        message = ", ".join(part for part in (fault.problem, fault.context) if part)
        if "\t" in self._lines[min(line, len(self._lines) - 1)][: column + 1]:
            hint = "indent with spaces: YAML takes no tabs there"
        elif "another document" in message:
            hint = "keep one document in a file: take out the `---`"
        elif "alias" in message:
            hint = "put quotes round a text that begins with `*`, or define the anchor before it"
        elif "nesting depth" in message:
            hint = f"nest at most {DEEPEST} levels"
        else:
            hint = (
                "look for wrong indentation, an open quote or bracket, or a missing `:` near here"
            )
        self.misread(message, line, column, hint)

    def _node(self, raw: yaml.Node, pointer: str, depth: int) -> Node:
        """Return a node with its place. An aliased node keeps the place of its anchor."""
        if id(raw) in self._known:
            return self._known[id(raw)]
        if id(raw) in self._sizes:
            hint = "take the alias out"
            self._stop("workspace.yaml-parse", "an alias leads back to itself", raw, pointer, hint)
        if depth > DEEPEST:
            hint = f"nest at most {DEEPEST} levels"
            message = "the file is nested too deeply"
            self._stop("workspace.deep-nesting", message, raw, pointer, hint)
        self._sizes[id(raw)] = 1
        match raw:
            case yaml.MappingNode():
                node: Node = self._mapping(raw, pointer, depth)
            case yaml.SequenceNode():
                node = self._list(raw, pointer, depth)
            case yaml.ScalarNode():
                node = self._scalar(raw, pointer)
            case _:
                raise TypeError(f"PyYAML composed {type(raw).__name__}, which is no node")
        self._known[id(raw)] = node
        return node

    def _list(self, raw: yaml.SequenceNode, pointer: str, depth: int) -> ListNode:
        items = [
            self._node(item, f"{pointer}/{index}", depth + 1)
            for index, item in enumerate(raw.value)
        ]
        self._measure(raw, raw.value, pointer)
        return ListNode(self._place(raw, pointer), tuple(items))

    def _mapping(self, raw: yaml.MappingNode, pointer: str, depth: int) -> MapNode:
        entries: dict[str, Entry] = {}
        merged: list[Entry] = []
        for raw_key, raw_value in raw.value:
            if not isinstance(raw_key, yaml.ScalarNode):
                message = "a key is a list or a mapping; it must be a text"
                hint = "put quotes round the key"
                self._stop("workspace.yaml-parse", message, raw_key, pointer, hint)
            name = raw_key.value
            below = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
            key = self._scalar(raw_key, below)
            value = self._node(raw_value, below, depth + 1)
            if isinstance(value, ScalarNode) and value.value is None and not value.text:
                # An absent value has no place of its own; its key has.
                value = ScalarNode(key.at, "", None)
            if name in entries:
                message = f"the key `{name}` stands here twice"
                first = Related(f"`{name}` stands here first", entries[name].key.at)
                hint = "merge the two, or take one out: only one of them could count"
                self._problems.append(
                    error("workspace.duplicate-key", message, key.at, hint, first)
                )
            elif raw_key.tag == _MERGE:
                merged.append(Entry(key, value))
            else:
                entries[name] = Entry(key, value)
        self._measure(raw, [value for _, value in raw.value], pointer)
        for source in merged:
            entries = {**self._merged(source, raw, pointer), **entries}
        return MapNode(self._place(raw, pointer), entries)

    def _merged(self, source: Entry, raw: yaml.Node, pointer: str) -> dict[str, Entry]:
        """Return the entries that a `<<` brings in; of several mappings the first wins."""
        entries: dict[str, Entry] = {}
        nodes = source.value.items if isinstance(source.value, ListNode) else (source.value,)
        for node in nodes:
            if not isinstance(node, MapNode):
                hint = "merge a mapping that has an anchor"
                message = f"`<<` merges mappings, not {kind_of(node)}"
                self._stop("workspace.yaml-parse", message, raw, pointer, hint)
            entries = {**node.entries, **entries}
        return entries

    def _scalar(self, raw: yaml.ScalarNode, pointer: str) -> ScalarNode:
        at = self._place(raw, pointer)
        if raw.tag not in _TYPED:
            return ScalarNode(at, raw.value, raw.value)
        try:
            return ScalarNode(at, raw.value, _TYPED[raw.tag](_CONSTRUCTOR, raw))
        except (ValueError, LookupError, OverflowError):
            message = f"this is no valid {raw.tag.rpartition(':')[2]}"
            self._stop("workspace.yaml-parse", message, raw, pointer, "put quotes round it")

    def _measure(self, raw: yaml.Node, children: list[yaml.Node], pointer: str) -> None:
        size = 1 + sum(self._sizes[id(child)] for child in children)
        if size > LARGEST:
            hint = "take out aliases of aliases"
            message = "the aliases of the file multiply beyond measure"
            self._stop("workspace.yaml-parse", message, raw, pointer, hint)
        self._sizes[id(raw)] = size

    def _stop(self, code: Code, message: str, raw: yaml.Node, pointer: str, hint: str) -> NoReturn:
        self._problems.append(error(code, message, self._place(raw, pointer), hint))
        raise _Stop

    def _place(self, raw: yaml.Node, pointer: str) -> Location:
        start, end = raw.start_mark, raw.end_mark
        if end.line == start.line and end.column > start.column and end.line < len(self._lines):
            text = self._lines[start.line]
            width = end.column - start.column
            return Location(self._path, start.line + 1, start.column + 1, pointer, text, width)
        return self._location(start.line, start.column, sys.maxsize, pointer)

    def _location(self, line: int, column: int, width: int, pointer: str) -> Location:
        """Return a place that lies within the file, wherever YAML says that it is.

        The end of a file, and of what goes on over several lines, may be named as a place where
        there is no text.
        """
        line = min(line, len(self._lines) - 1)
        text = self._lines[line]
        column = min(column, len(text))
        width = max(1, min(width, len(text.rstrip()) - column))
        return Location(self._path, line + 1, column + 1, pointer, text, width)


_CONSTRUCTOR: Final = SafeConstructor()
"""Holds no state that the conversions of `_TYPED` touch."""
