"""How the command talks: one voice, on stderr, so that stdout holds data alone."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal, NoReturn, TextIO, TypeAlias

import typer

FAILED: Final = 1
"""Exit code of a command that found problems, or whose run failed."""
WRONG_USAGE: Final = 2
"""Exit code of a command that was used wrongly."""

Format: TypeAlias = Literal["text", "json"]
"""How a command prints its data: for people, or for programs."""


def takes_colour(stream: TextIO) -> bool:
    """Return whether what is printed to `stream` may be coloured."""
    return stream.isatty() and "NO_COLOR" not in os.environ


@contextmanager
def for_a_reader() -> Iterator[None]:
    """Go on quietly behind what is printed within, when the reader of stdout has seen enough."""
    try:
        yield
    except BrokenPipeError:
        # What is buffered must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str) -> None:
    """Print a line of talk."""
    typer.echo(text, err=True)


def stop(problem: str, *, hint: str, code: int) -> NoReturn:
    """Say what is wrong and what to do, and leave.

    Args:
        problem: a lower-case sentence without a full stop, with backticks round what was typed.
        hint: what to do, in the same form.
        code: `FAILED` when the run failed, `WRONG_USAGE` when the command was used wrongly.
    """
    say(f"error: {problem}\n\nhint: {hint}")
    raise typer.Exit(code)
