"""What the demo's commands did, as data: what the audit log has, and what a harness saw."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, final

from pydantic import TypeAdapter, ValidationError

from interceptors import AuditRecord
from seriatim.demo.commands import DemoError
from seriatim.stores.audit_log import open_audit_log
from seriatim.stores.errors import AuditStoreError


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


def recorded(log: Path, run: str) -> list[AuditRecord]:
    """Return the rows that an audit log has of a run.

    Raises:
        DemoError: when it cannot be read.
    """
    try:
        with open_audit_log(log) as reader:
            return reader.records({"run": run}, until=reader.end())
    except AuditStoreError as error:
        raise DemoError(error.message) from error


def visit_of(text: str) -> Visit:
    """Return what `harness.py` printed.

    Raises:
        DemoError: when a line is nothing that it prints.
    """
    schemas: dict[str, list[str]] = {}
    calls: list[Called] = []
    for line in text.splitlines():
        match _seen(line):
            case Listed(tools):
                schemas |= tools
            case Called() as called:
                calls.append(called)
    return Visit(schemas, tuple(calls))


def _seen(line: str) -> Seen:
    try:
        return TypeAdapter[Seen](Seen).validate_json(line)
    except ValidationError as error:
        raise DemoError(f"the harness printed a line that is not understood: {line}") from error
