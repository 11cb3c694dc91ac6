"""What is wrong with a topology, where, and what to do about it."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import Literal, TypeAlias, final

Code: TypeAlias = Literal[
    "agent.abstract-skill",
    "agent.bad-id",
    "agent.bad-requires",
    "agent.bad-skill-entry",
    "agent.child-is-skill",
    "agent.duplicate-id",
    "agent.like-skills",
    "agent.misspelt-requires",
    "agent.requires-bypass",
    "agent.requires-cycle",
    "agent.requires-denied",
    "agent.requires-duplicate",
    "agent.requires-empty",
    "agent.requires-misplaced",
    "agent.requires-not-a-tool",
    "agent.requires-unknown-skill",
    "agent.unknown-archetype",
    "agent.unknown-bulk-grant",
    "agent.unknown-skill",
    "archetype.duplicate-id",
    "executor.children-unreached",
    "executor.config-ignored",
    "executor.unknown-harness",
    "schema.bad-value",
    "schema.enum-mismatch",
    "schema.required-field",
    "schema.type-mismatch",
    "server.duplicate-id",
    "settings.bad-value",
    "settings.misplaced",
    "settings.unknown-key",
    "skill.bad-id",
    "skill.duplicate-id",
    "skill.retry-ignored",
    "skill.unknown-server",
    "topology.duplicate-id",
    "workspace.deep-nesting",
    "workspace.duplicate-key",
    "workspace.kind-mismatch",
    "workspace.malformed",
    "workspace.no-topology",
    "workspace.unreadable",
    "workspace.yaml-parse",
]
"""Every code a problem may have; stable, and SwarmKit's own where SwarmKit has one."""


class Severity(Enum):
    """Whether a problem keeps the topology from being run."""

    ERROR = "error"
    WARNING = "warning"


@final
@dataclass(frozen=True, slots=True)
class Location:
    """A place in a file.

    Attributes:
        path: the file, relative to the path that is validated.
        line: counted from 1.
        column: counted from 1, in characters.
        pointer: the JSON pointer of the node that stands there.
        text: the line, without its end.
        width: how many characters of the line belong to the place.
    """

    path: str
    line: int
    column: int
    pointer: str
    text: str
    width: int


@final
@dataclass(frozen=True, slots=True)
class Related:
    """Another place that has to do with a problem, and what is there."""

    message: str
    at: Location


@final
@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        message: a clause in lower case; what the author wrote stands in backticks.
        hint: what to do about it.
    """

    code: Code
    severity: Severity
    message: str
    at: Location
    hint: str
    related: tuple[Related, ...]


def error(code: Code, message: str, at: Location, hint: str, *related: Related) -> Problem:
    """Return a problem that keeps the topology from being run."""
    return Problem(code, Severity.ERROR, message, at, hint, related)


def warning(code: Code, message: str, at: Location, hint: str, *related: Related) -> Problem:
    """Return a problem that the topology can be run with."""
    return Problem(code, Severity.WARNING, message, at, hint, related)


def by_place(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems in the order of their places, each once."""
    once = dict.fromkeys(problems)
    return tuple(sorted(once, key=lambda p: (p.at.path, p.at.line, p.at.column, p.code, p.message)))


def suggestion(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return a hint that names the nearest of the known names, or else the hint `otherwise`."""
    near = get_close_matches(name, list(known), n=1)
    return f"did you mean `{near[0]}`?" if near else otherwise


def listing(names: Iterable[str]) -> str:
    """Return names for a text: in backticks, a dozen at most."""
    quoted = [f"`{name}`" for name in names]
    return ", ".join(quoted[:12] + (["..."] if len(quoted) > 12 else [])) or "none"
