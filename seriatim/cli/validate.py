"""`seriatim validate`: all that is wrong with a topology, each with its place."""

import sys
from typing import Annotated, assert_never

import typer

from seriatim.cli.options import WorkspacePath
from seriatim.cli.paint import paint_for
from seriatim.cli.voice import FAILED, WRONG_USAGE, Format, for_a_reader, say, stop
from seriatim.topology import (
    Broken,
    NothingToValidateError,
    Sound,
    as_json,
    as_text,
    load,
    summary,
)


def validate(
    path: WorkspacePath,
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
    with for_a_reader():
        match format_:
            case "text":
                if loaded.problems:
                    typer.echo(f"{as_text(loaded.problems, paint_for(sys.stdout))}\n")
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
