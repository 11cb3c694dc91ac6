"""Figures of the comparison between an order held by hand and one held by the topology."""

from collections.abc import Mapping
from difflib import ndiff
from pathlib import Path


def code_lines(file: Path) -> int:
    """Return how many lines of a file are not blank."""
    return sum(1 for line in _lines(file) if line.strip())


def rule_lines(before: Path, after: Path) -> list[str]:
    """Return the lines by which an agent's rules make `after` of `before`."""
    return [line.removeprefix("+ ") for line in _compared(before, after) if line.startswith("+ ")]


def rule_in_place(before: Path, after: Path) -> list[str]:
    """Return the rules as a diff that begins with the line above them."""
    lines = _compared(before, after)
    first = next((index for index, line in enumerate(lines) if line.startswith("+ ")), 0)
    return lines[max(first - 1, 0) : first + len(rule_lines(before, after))]


def arguments_named(schemas: Mapping[str, list[str]], name: str) -> int:
    """Return how many tools take an argument of that name."""
    return sum(name in arguments for arguments in schemas.values())


def _compared(before: Path, after: Path) -> list[str]:
    """Return a line diff from `agents:` on; what is above names and describes the files."""
    old, new = _agents(before), _agents(after)
    return [line for line in ndiff(old, new) if not line.startswith("? ")]


def _agents(file: Path) -> list[str]:
    lines = _lines(file)
    return lines[lines.index("agents:") :]


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()
