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
            max([self.agent, *(len(name_shown(record.agent)) for record in rows)]),
            max([self.skill, *(len(skill_shown(record)) for record in rows)]),
            max([self.outcome, *(len(outcome_words(record)) for record in rows)]),
        )


def text_lines(record: AuditRecord, widths: Widths, *, colour: bool) -> list[str]:
    """Return the lines of a row: one, and one more for a refusal's reason or a failure's words."""
    outcome = f"{outcome_words(record):<{widths.outcome}}"
    cells = (
        escaped(record.time),
        f"{name_shown(record.agent):<{widths.agent}}",
        f"{skill_shown(record):<{widths.skill}}",
        _styled(record, outcome) if colour else outcome,
        f"{record.duration:>8.3f} s",
        f"decision {short_id(record.decision_id)}",
    )
    return ["  ".join(cells), *(f"{_INDENT}{detail}" for detail in details(record))]


def json_line(record: AuditRecord) -> str:
    """Return a row as one JSON object: the fields of DESIGN.md, section 4, in its order."""
    return json_printable(as_object(record))


def json_printable(value: object) -> str:
    """Return `value` as JSON on one line, of printable characters."""
    # The one control character that JSON lets stand in a string.
    return json_text(value).replace("\x7f", "\\u007f")


def header(record: AuditRecord) -> str:
    """Return what stands above the rows of a run."""
    return f"run {name_shown(record.run)}, topology {name_shown(record.topology)} (times are UTC)"


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


def counted(number: int, one: str, several: str) -> str:
    """Return the number with the word that fits it."""
    return f"{number} {one if number == 1 else several}"


def name_shown(text: str) -> str:
    """Return a name as it is shown: escaped, and cut where it is very long."""
    return _cut(escaped(text), LONGEST_NAME)


def short_id(id_: str) -> str:
    """Return the end of an id, which is random, so that two of them are told apart."""
    return name_shown(id_[-_SHORT_ID:])


def skill_shown(record: AuditRecord) -> str:
    """Return the name of what a row is about.

    An arrow marks an agent to which a task was handed, a tilde a skill whose tool changed.
    """
    match record.event_type:
        case "agent.delegated":
            return f"-> {name_shown(record.skill)}"
        case "tool.changed":
            return f"~ {name_shown(record.skill)}"
        case _:
            return name_shown(record.skill)


def outcome_words(record: AuditRecord) -> str:
    """Return the outcome, with the rule of a refusal and the kind of a failure."""
    if record.event_type == "tool.changed":
        return "CHANGED"
    match record.outcome:
        case "refused":
            return f"REFUSED {name_shown(record.rule or '')}".rstrip()
        case "failed":
            return f"failed {name_shown(record.error_kind or '')}".rstrip()
        case _:
            return name_shown(record.outcome)


def details(record: AuditRecord) -> list[str]:
    """Return what stands below the outcome: a refusal's reason, a failure's words, a change."""
    if record.event_type == "tool.changed":
        return [f"its tool {escaped(record.output or '')}"]
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
