"""`seriatim demo`: shows the gate at work, on a real MCP server, without a key or a network."""

from pathlib import Path
from typing import Annotated, assert_never

import anyio
import typer

from seriatim.cli.signals import Done, Interrupted, until_signalled
from seriatim.cli.voice import FAILED, WRONG_USAGE, stop
from seriatim.demo.commands import DemoError
from seriatim.demo.page import Page
from seriatim.demo.place import OccupiedError, free_place, unpack
from seriatim.demo.story import Story


def demo(
    directory: Annotated[
        Path | None,
        typer.Option(
            "--dir",
            help="Where its workspace goes; `seriatim-demo` in the current directory otherwise.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show an agent that is refused, does what it is told, and succeeds."""
    place = directory or free_place()
    try:
        unpack(place)
    except OccupiedError:
        stop(
            f"`{place}` is not empty, and nothing in it is overwritten",
            hint="give a directory that is empty or not there yet, or leave `--dir` out",
            code=WRONG_USAGE,
        )
    except OSError as error:
        stop(
            f"cannot write the workspace of the demo: {error}",
            hint="give a directory that can be written with `--dir`",
            code=FAILED,
        )
    try:
        ended = anyio.run(until_signalled, Story(Page(), place).tell)
    except DemoError as error:
        stop(str(error), hint=f"what happened until then is in `{place}`", code=FAILED)
    match ended:
        case Done():
            pass
        case Interrupted(code):
            raise typer.Exit(code)
        case _:
            assert_never(ended)
