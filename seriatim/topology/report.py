"""Problems as people read them, and as programs do."""

import json
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Final, TypeAlias

from interceptors import printable
from seriatim.topology.problems import Location, Problem, Severity

BEFORE: Final = 60
"""Characters of a long line that are shown before the place."""
WIDEST: Final = 120
"""Characters of a line that are shown."""


class Part(Enum):
    """What a piece of a report is, for whoever paints it."""

    PLACE = "place"
    ERROR = "error"
    WARNING = "warning"
    MARGIN = "margin"
    HINT = "hint"


Paint: TypeAlias = Callable[[Part, str], str]
"""Dresses a piece of a report for where it is shown."""


def unpainted(_part: Part, text: str) -> str:
    """Return the text as it is, for where there are no colours."""
    return text


def as_text(problems: Iterable[Problem], paint: Paint = unpainted) -> str:
    """Return the problems one below the other, the offending text of each under a caret."""
    return "\n\n".join("\n".join(_lines(problem, paint)) for problem in problems)


def as_json(problems: Sequence[Problem], files: int) -> str:
    """Return one JSON object with all problems and how many there are."""
    return json.dumps(
        {
            "problems": [
                {
                    "code": problem.code,
                    "severity": problem.severity.value,
                    "message": problem.message,
                    "path": problem.at.path,
                    "line": problem.at.line,
                    "column": problem.at.column,
                    "pointer": problem.at.pointer,
                    "hint": problem.hint,
                }
                for problem in problems
            ],
            "summary": {
                "errors": _count(problems, Severity.ERROR),
                "warnings": _count(problems, Severity.WARNING),
                "files": files,
            },
        },
        indent=2,
    )


def summary(problems: Sequence[Problem], files: int) -> str:
    """Return how many problems there are, as a line (`1 error, 0 warnings in 3 files`)."""
    errors = _plural(_count(problems, Severity.ERROR), "error")
    warnings = _plural(_count(problems, Severity.WARNING), "warning")
    return f"{errors}, {warnings} in {_plural(files, 'file')}"


def _count(problems: Iterable[Problem], severity: Severity) -> int:
    return sum(problem.severity is severity for problem in problems)


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _lines(problem: Problem, paint: Paint) -> Iterable[str]:
    if problem.severity is Severity.ERROR:
        code = paint(Part.ERROR, problem.code)
    else:
        code = f"{paint(Part.WARNING, problem.code)} (warning)"
    yield f"{_place(problem.at, paint)}: {code}: {_shown(problem.message)}"
    yield from _excerpt(problem, paint)
    for related in problem.related:
        yield f"  {_place(related.at, paint)}: {_shown(related.message)}"
    yield ""
    yield f"{paint(Part.HINT, 'hint:')} {_shown(problem.hint)}"


def _place(at: Location, paint: Paint) -> str:
    return paint(Part.PLACE, f"{_shown(at.path)}:{at.line}:{at.column}")


def _excerpt(problem: Problem, paint: Paint) -> Iterable[str]:
    at = problem.at
    start = at.column - 1
    first = max(0, start - BEFORE) if len(at.text) > WIDEST else 0
    line = "".join(_cell(c) for c in at.text[first : first + WIDEST])
    number = str(at.line)
    indent = sum(_columns(_cell(c)) for c in at.text[first:start])
    under = at.text[start : start + at.width][: WIDEST - (start - first)]
    carets = "^" * max(1, sum(_columns(_cell(c)) for c in under))
    kind = Part.ERROR if problem.severity is Severity.ERROR else Part.WARNING
    yield f"  {paint(Part.MARGIN, f'{number} |')} {line}".rstrip()
    yield f"  {paint(Part.MARGIN, ' ' * len(number) + ' |')} {' ' * indent}{paint(kind, carets)}"


def _cell(character: str) -> str:
    """Return what stands for a character of a file on the terminal, which it may not disturb."""
    if character == "\t":
        return " "
    return character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"


def _columns(character: str) -> int:
    """Return how many columns of a terminal a character takes."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _shown(text: str) -> str:
    """Return a text on one line, nothing in it that a terminal would obey."""
    return "".join(c if c.isprintable() else printable(c) for c in text)
