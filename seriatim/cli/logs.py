"""`seriatim logs`: prints the audit log. Needs no topology that is right, or even readable."""

import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Annotated, Final, Literal

import typer

from interceptors import AuditRecord
from seriatim.cli.lines import Widths, escaped, header, json_line, text_lines
from seriatim.cli.options import AuditPlace, WorkspacePath
from seriatim.cli.recorded import chosen_run, log_of
from seriatim.cli.voice import Format, say, takes_colour
from seriatim.stores.audit_log import (
    ALL,
    AuditReader,
    Criteria,
    Criterion,
    await_audit_log,
    open_audit_log,
)


def logs(
    path: WorkspacePath,
    run: Annotated[
        str, typer.Option(help="The run to print; the newest otherwise.", show_default=False)
    ] = "",
    agent: Annotated[
        str, typer.Option(help="Only the calls of this agent.", show_default=False)
    ] = "",
    skill: Annotated[
        str, typer.Option(help="Only the calls of this skill.", show_default=False)
    ] = "",
    decision: Annotated[
        Literal["allow", "deny"] | None,
        typer.Option(help="Only what was allowed, or what was refused."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only so many of the latest rows.")
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", help="Go on with what is recorded, of any run unless one is named."
        ),
    ] = False,
    format_: Annotated[Format, typer.Option("--format", help="How a row is printed.")] = "text",
    audit: AuditPlace = "",
) -> None:
    """Print the audit log of a run: one line a call, and the reason of each refusal."""
    wanted: dict[Criterion, str] = {
        "run": run,
        "agent": agent,
        "skill": skill,
        "policy_decision": decision or "",
    }
    criteria = {column: value for column, value in wanted.items() if value}
    printer = _Printer(format_)
    # An interrupt is how `--follow` is meant to end.
    with suppress(KeyboardInterrupt), log_of(path, audit) as log:
        if follow:
            if not log.exists():
                say(f"there is no audit log yet at `{log}`; waiting for it")
            with await_audit_log(log) as reader:
                _follow(reader, criteria, limit or ALL, printer)
        else:
            with open_audit_log(log) as reader:
                _print(reader, criteria, limit or ALL, printer)


class _Printer:
    """Prints rows in one form; keeps columns aligned, and says which run the rows are of."""

    def __init__(self, format_: Format) -> None:
        self._format: Final = format_
        self._colour: Final = takes_colour(sys.stdout)
        self._widths = Widths()
        self._run = ""

    def rows(self, records: Iterable[AuditRecord]) -> None:
        """Print `records`, and flush."""
        rows = list(records)
        match self._format:
            case "json":
                lines = [json_line(record) for record in rows]
                _out(lines)
            case "text":
                self._widths = self._widths.widened(rows)
                for record in rows:
                    if record.run != self._run:
                        self._run = record.run
                        say(header(record))
                    _out(text_lines(record, self._widths, colour=self._colour))


def _out(lines: Iterable[str]) -> None:
    text = "\n".join(lines)
    if text:
        typer.echo(text)


def _print(reader: AuditReader, criteria: Criteria, limit: int, printer: _Printer) -> None:
    run = chosen_run(reader, criteria.get("run", ""))
    records = reader.records({**criteria, "run": run}, until=reader.end(), newest=limit)
    if not records:
        say(f"no call of run {escaped(run)} matches")
    printer.rows(records)


def _follow(reader: AuditReader, criteria: Criteria, limit: int, printer: _Printer) -> None:
    """Print the newest run, or the one that is asked for, and then whatever is recorded."""
    end = reader.end()
    for run in reader.newest_run():
        printer.rows(reader.records({"run": run, **criteria}, until=end, newest=limit))
    for records in reader.follow(criteria, after=end):
        printer.rows(records)
