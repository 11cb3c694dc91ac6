"""`seriatim logs`: prints the audit log. Needs no topology that is right, or even readable."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from interceptors import AuditRecord
from seriatim.cli.lines import Widths, escaped, header, json_line, text_lines
from seriatim.cli.voice import FAILED, WRONG_USAGE, Format, say, stop, takes_colour
from seriatim.stores.audit_log import (
    ALL,
    AuditReader,
    Criteria,
    Criterion,
    await_audit_log,
    open_audit_log,
)
from seriatim.stores.errors import AuditStoreError, NoAuditLogError, UnknownPlaceError
from seriatim.stores.places import chosen_place
from seriatim.topology.fields import Fields
from seriatim.topology.source import read


def logs(
    path: Annotated[
        Path, typer.Argument(help="A workspace directory, or a file that holds a topology.")
    ],
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
    audit: Annotated[
        str,
        typer.Option(
            help="Where the log is: a path, or `sqlite:///PATH`.",
            show_default=False,
        ),
    ] = "",
) -> None:
    """Print the audit log of a run: one line a call, and the reason of each refusal."""
    if not path.exists():
        stop(
            f"there is no `{path}`",
            hint="give a workspace directory, or a file that holds a topology",
            code=WRONG_USAGE,
        )
    wanted: dict[Criterion, str] = {
        "run": run,
        "agent": agent,
        "skill": skill,
        "policy_decision": decision or "",
    }
    criteria = {column: value for column, value in wanted.items() if value}
    try:
        log = _place(path, audit)
        printer = _Printer(format_)
        if follow:
            if not log.exists():
                say(f"there is no audit log yet at `{log}`; waiting for it")
            with await_audit_log(log) as reader:
                _follow(reader, criteria, limit or ALL, printer)
        else:
            with open_audit_log(log) as reader:
                _print(reader, criteria, limit or ALL, printer)
    except KeyboardInterrupt:
        return  # how `--follow` is meant to end
    except BrokenPipeError:
        # The reader of a pipe has seen enough. What is buffered must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except NoAuditLogError as error:
        stop(
            error.message,
            hint=f"`seriatim run {path} --input TEXT` makes one; `--audit` names another place",
            code=FAILED,
        )
    except UnknownPlaceError as error:
        stop(error.message, hint=error.hint, code=WRONG_USAGE)
    except AuditStoreError as error:
        stop(error.message, hint=error.hint, code=FAILED)


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
    newest = reader.newest_run()
    if not newest:
        raise NoAuditLogError("nothing has been recorded yet")
    run = criteria.get("run", newest[0])
    if not reader.has_run(run):
        stop(
            f"the audit log has no run `{escaped(run)}`",
            hint=f"the newest is `{escaped(newest[0])}`; without `--run` it is printed",
            code=FAILED,
        )
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


def _place(path: Path, audit: str) -> Path:
    """Return where the log of the workspace at `path` is.

    Raises:
        UnknownPlaceError: when the place that was named is none.
    """
    directory = path if path.is_dir() else path.parent
    # As `with_environment` has it, without its say on variables that do not concern the log.
    setting = os.environ.get("SERIATIM_AUDIT") or _setting(path)
    return chosen_place(audit, setting, directory).path


def _setting(path: Path) -> str:
    """Return what the workspace's own settings say of the log's place, or `""`.

    Only this one word is read, so that a mistake anywhere else does not hide the log.
    """
    beside = [path / "seriatim.yaml", path / "seriatim.yml"] if path.is_dir() else [path]
    for file in beside:
        if file.is_file():
            document = read(file, str(file))
            if not document.whole:
                say(f"cannot read `{file}`; looking for the log in its usual place")
            fields = Fields(document.root, [])
            return (fields if path.is_dir() else fields.section("seriatim")).text("audit")
    return ""
