"""The command `seriatim`."""

import io
import os
import sys
from typing import Final, NoReturn

import click

from interceptors.texts import clause
from seriatim.cli.app import app
from seriatim.cli.voice import FAILED, say

_SEE_HELP: Final = "see `seriatim --help`, or `--help` after a command"


def main() -> NoReturn:
    """Run the command line, and leave with its exit code."""
    # So that a workspace can name the interpreter that has what seriatim has.
    os.environ.setdefault("SERIATIM_PYTHON", sys.executable)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What the encoding of stdout lacks becomes an escape instead of an exception.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = app(standalone_mode=False)
    except click.ClickException as error:
        sys.exit(_explain(error))
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has left; there is nobody to tell.
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:
        if os.environ.get("SERIATIM_DEBUG"):
            raise
        say(
            f"error: seriatim failed: {clause(error)}\n\n"
            "hint: this is a fault of ours; run it again with `SERIATIM_DEBUG=1` for the traceback"
        )
        sys.exit(FAILED)
    sys.exit(code if isinstance(code, int) else 0)


def _explain(error: click.ClickException) -> int:
    """Say in our voice what the parser found wrong, and return the exit code."""
    message, _, suggestion = error.format_message().partition(" Did you mean ")
    problem = message.replace("'", "`").removesuffix(".")
    named = suggestion.partition("?")[0].replace("'", "`")
    hint = f"did you mean {named}?" if named else _SEE_HELP
    say(f"error: {problem[:1].lower()}{problem[1:]}\n\nhint: {hint}")
    return error.exit_code
