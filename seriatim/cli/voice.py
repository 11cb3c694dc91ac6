"""How the command talks: one voice, on stderr, so that stdout holds data alone."""

from typing import NoReturn

import typer

WRONG_USAGE = 2
FAILED = 1


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
