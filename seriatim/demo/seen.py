"""What the demo's commands printed, as data: rows of the audit log, and what a harness saw."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, final

from pydantic import TypeAdapter, ValidationError

from seriatim.demo.commands import DemoError

Line = TypeVar("Line")


@final
@dataclass(frozen=True, slots=True)
class Row:
    """The fields of an audit row that the demo's claims rest on."""

    skill: str
    policy_decision: str
    outcome: str
    reason: str | None


@final
@dataclass(frozen=True, slots=True)
class Listed:
    """The tools that a harness was offered: name -> names of the arguments."""

    tools: Mapping[str, list[str]]


@final
@dataclass(frozen=True, slots=True)
class Called:
    """One call that a harness made, and what came back."""

    call: str
    is_error: bool
    text: str


Seen: TypeAlias = Listed | Called


@final
@dataclass(frozen=True, slots=True)
class Visit:
    """All that a harness saw."""

    schemas: Mapping[str, list[str]]
    calls: tuple[Called, ...]


def rows_of(text: str) -> list[Row]:
    """Return the rows that `seriatim logs --format json` printed.

    Raises:
        DemoError: when a line is no row.

    """
    return _lines(text, TypeAdapter(Row))


def visit_of(text: str) -> Visit:
    """Return what `harness.py` printed.

    Raises:
        DemoError: when a line is nothing that it prints.

    """
    seen: Iterable[Seen] = _lines(text, TypeAdapter[Seen](Seen))
    schemas: dict[str, list[str]] = {}
    calls: list[Called] = []
    for line in seen:
        match line:
            case Listed(tools):
                schemas |= tools
            case Called():
                calls.append(line)
    return Visit(schemas, tuple(calls))


def _lines(text: str, adapter: TypeAdapter[Line]) -> list[Line]:
    try:
        return [adapter.validate_json(line) for line in text.splitlines() if line.strip()]
    except ValidationError as error:
        raise DemoError(f"a command printed a line that is not understood:\n{error}") from error
