"""Ids for servers and skills: readable, valid for SwarmKit, unique, and the same every time."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import count
from typing import Final

from interceptors import ToolRef

LONGEST: Final = 48
"""Characters of an id: some providers take names of 64, and Claude Code puts 15 before ours."""

_WORD_INSIDE: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_OTHERS: Final = re.compile(r"[^a-z0-9]+")


def slug(text: str) -> str:
    """Return what of a text can stand in an id, or `""` when nothing can.

    >>> slug("readFile"), slug("Größe/ändern"), slug("3d.view"), slug("検索")
    ('read-file', 'grosse-andern', 'tool-3d-view', '')
    """
    plain = unicodedata.normalize("NFKD", text.replace("ß", "ss"))
    ascii_only = plain.encode("ascii", "ignore").decode()
    joined = _OTHERS.sub("-", _WORD_INSIDE.sub("-", ascii_only).lower()).strip("-")
    if joined[:1].isdigit():
        joined = f"tool-{joined}"
    return joined[:LONGEST].rstrip("-")


def free(wish: str, taken: Collection[str]) -> str:
    """Return an id that is not taken: the wish, or the wish with the first number that is free."""
    if wish not in taken:
        return wish
    for number in count(2):
        end = f"-{number}"
        numbered = f"{wish[: LONGEST - len(end)].rstrip('-')}{end}"
        if numbered not in taken:
            return numbered
    raise AssertionError("there is no end of numbers")


def skill_ids(
    tools: Sequence[ToolRef], known: Mapping[ToolRef, str], taken: Collection[str]
) -> Mapping[ToolRef, str]:
    """Return an id for each tool that has none: its own name, or with its server's where two clash.

    Args:
        tools: in the order in which they are to be named.
        known: the ids of tools that have one; they keep it.
        taken: further ids that are somebody's.
    """
    new = [tool for tool in dict.fromkeys(tools) if tool not in known]
    wishes = {tool: slug(tool.name) for tool in new}
    wanted = Counter(wishes.values())
    used = {*taken, *known.values()}
    ids = {
        tool: wish
        for tool, wish in wishes.items()
        if wish and wanted[wish] == 1 and wish not in used
    }
    used.update(ids.values())
    for tool in new:
        if tool not in ids:
            ids[tool] = free(slug(f"{tool.server}-{wishes[tool] or 'tool'}"), used)
            used.add(ids[tool])
    return {tool: ids[tool] for tool in new}
