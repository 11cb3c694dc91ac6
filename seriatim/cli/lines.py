"""How a row of the audit log reads on a terminal, and how it leaves as JSON.

Names, reasons and outputs come from tools and models: whatever they hold, a row takes exactly its
own lines, and moves no cursor.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

import typer

from interceptors import AuditRecord
from seriatim.stores.rows import as_object, json_text

LONGEST_NAME: Final = 48
"""Characters of a name that are shown; the JSON form has all of them."""
LONGEST_OUTPUT: Final = 200
"""Characters that are shown of what a failed call wrote."""
_SHORT_ID: Final = 8
_INDENT: Final = "    "


@final
@dataclass(frozen=True, slots=True)
class Widths:
    """How wide the columns are that hold names."""

    agent: int = 0
    skill: int = 0
    outcome: int = 0

    def widened(self, records: Iterable[AuditRecord]) -> "Widths":
        """Return the widths that hold `records` too."""
        rows = list(records)
        return Widths(
            max([self.agent, *(len(_name(record.agent)) for record in rows)]),
            max([self.skill, *(len(_skill(record)) for record in rows)]),
            max([self.outcome, *(len(_outcome(record)) for record in rows)]),
        )


def text_lines(record: AuditRecord, widths: Widths, *, colour: bool) -> list[str]:
    """Return the lines of a row: one, and one more for a refusal's reason or a failure's words."""
    outcome = f"{_outcome(record):<{widths.outcome}}"
    cells = (
        escaped(record.time),
        f"{_name(record.agent):<{widths.agent}}",
        f"{_skill(record):<{widths.skill}}",
        _styled(record, outcome) if colour else outcome,
        f"{record.duration:>8.3f} s",
        f"decision {_name(record.decision_id[-_SHORT_ID:])}",
    )
    return ["  ".join(cells), *(f"{_INDENT}{detail}" for detail in _details(record))]


def json_line(record: AuditRecord) -> str:
    """Return a row as one JSON object: the fields of DESIGN.md, section 4, in its order."""
    # The one control character that JSON lets stand in a string.
    return json_text(as_object(record)).replace("\x7f", "\\u007f")


def header(record: AuditRecord) -> str:
    """Return what stands above the rows of a run."""
    return f"run {_name(record.run)}, topology {_name(record.topology)} (times are UTC)"


def escaped(text: str) -> str:
    r"""Return `text` with each character that does not print as an escape, such as `\n`.

    These are the control characters, line and paragraph separators, bidirectional overrides and
    other invisible characters, and lone surrogates.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _name(text: str) -> str:
    return _cut(escaped(text), LONGEST_NAME)


def _skill(record: AuditRecord) -> str:
    match record.event_type:
        case "agent.delegated":
            return f"-> {_name(record.skill)}"
        case _:
            return _name(record.skill)


def _outcome(record: AuditRecord) -> str:
    match record.outcome:
        case "refused":
            return f"REFUSED {_name(record.rule or '')}".rstrip()
        case "failed":
            return f"failed {_name(record.error_kind or '')}".rstrip()
        case _:
            return _name(record.outcome)


def _details(record: AuditRecord) -> list[str]:
    match record.outcome:
        case "refused":
            return [escaped(record.reason or "")]
        case "failed":
            return [_cut(escaped(record.output or ""), LONGEST_OUTPUT)]
        case _:
            return []


def _styled(record: AuditRecord, text: str) -> str:
    match record.outcome:
        case "refused":
            return typer.style(text, fg=typer.colors.YELLOW, bold=True)
        case "failed":
            return typer.style(text, fg=typer.colors.RED)
        case _:
            return text
