"""The command `seriatim`."""

import sys
from typing import Final, NoReturn

import typer

from seriatim.cli.app import app
from seriatim.cli.voice import say

_SEE_HELP: Final = "see `seriatim --help`, or `--help` after a command"


def main() -> NoReturn:
    """Run the command line, and leave with its exit code."""
    try:
        code = app(standalone_mode=False)
    except typer.TyperException as error:
        sys.exit(_explain(error))
    except typer.Abort:
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has left; there is nobody to tell.
        sys.stderr.close()
        sys.exit(0)
    sys.exit(code if isinstance(code, int) else 0)


def _explain(error: typer.TyperException) -> int:
    """Say in our voice what the parser found wrong, and return the exit code."""
    message, _, suggestion = error.format_message().partition(" Did you mean ")
    problem = message.replace("'", "`").removesuffix(".")
    hint = "did you mean " + suggestion.replace("'", "`") if suggestion else _SEE_HELP
    say(f"error: {problem[:1].lower()}{problem[1:]}\n\nhint: {hint}")
    return error.exit_code
