"""`seriatim validate`: all that is wrong with a topology, each with its place."""

import io
import os
import sys
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias, assert_never

import typer

from seriatim.cli.voice import FAILED, WRONG_USAGE, say, stop
from seriatim.topology import (
    Broken,
    NothingToValidateError,
    Paint,
    Part,
    Sound,
    as_json,
    as_text,
    load,
    summary,
    unpainted,
)

Format: TypeAlias = Literal["text", "json"]

_COLOURS: Final = {
    Part.PLACE: typer.colors.BRIGHT_WHITE,
    Part.ERROR: typer.colors.RED,
    Part.WARNING: typer.colors.YELLOW,
    Part.MARGIN: typer.colors.BLUE,
    Part.HINT: typer.colors.CYAN,
}


def validate(
    path: Annotated[
        Path,
        typer.Argument(help="A workspace directory, or one file that holds a topology."),
    ],
    format_: Annotated[
        Format,
        typer.Option("--format", help="`json` gives programs one object with the same data."),
    ] = "text",
) -> None:
    """Check a topology: every problem at once, with its place and a way out.

    Agents, skills, archetypes and servers must fit together, and it must be possible to keep the
    order rules (`requires:`): no cycle, no skill that the agent lacks or may never call, no way
    round a rule.

    Exits with 0 when the topology can be run (there may be warnings), with 1 when it has errors,
    and with 2 when there is nothing to validate.
    """
    try:
        loaded = load(path)
    except NothingToValidateError as error:
        stop(str(error), hint=error.hint, code=WRONG_USAGE)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What the terminal's encoding lacks becomes an escape instead of an exception.
        sys.stdout.reconfigure(errors="backslashreplace")
    match format_:
        case "text":
            if loaded.problems:
                typer.echo(f"{as_text(loaded.problems, _paint())}\n")
            say(summary(loaded.problems, loaded.files))
        case "json":
            typer.echo(as_json(loaded.problems, loaded.files))
        case _:
            assert_never(format_)
    match loaded:
        case Sound():
            pass
        case Broken():
            raise typer.Exit(FAILED)
        case _:
            assert_never(loaded)


def _paint() -> Paint:
    colourful = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return _coloured if colourful else unpainted


def _coloured(part: Part, text: str) -> str:
    return typer.style(text, fg=_COLOURS[part], bold=part is not Part.MARGIN)
