"""The command `seriatim`."""

import io
import os
import sys
import warnings
from typing import Final, NoReturn, TextIO

import click

from interceptors.texts import clause
from seriatim.cli.lines import escaped
from seriatim.cli.voice import FAILED, say

_SEE_HELP: Final = "see `seriatim --help`, or `--help` after a command"


def main() -> NoReturn:
    """Run the command line, and leave with its exit code."""
    # So that a workspace can name the interpreter that has what seriatim has.
    os.environ.setdefault("SERIATIM_PYTHON", sys.executable)
    _expect_odd_streams()
    warnings.showwarning = _warn
    try:
        # Here, because it takes a tenth of a second, in which Ctrl-C is a Ctrl-C too.
        from seriatim.cli.app import app  # noqa: PLC0415  see above

        code = app(standalone_mode=False)
    except click.ClickException as error:
        sys.exit(_explain(error))
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except Exception as error:
        if os.environ.get("SERIATIM_DEBUG"):
            raise
        say(_explained(error))
        sys.exit(FAILED)
    sys.exit(code if isinstance(code, int) else 0)


def _expect_odd_streams() -> None:
    """Make do with standard streams that are closed, or whose encoding lacks characters."""
    # In the order of their descriptors: each that is closed leaves the lowest one free.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115  for the life of the process
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What the encoding of stdout lacks becomes an escape instead of an exception.
        sys.stdout.reconfigure(errors="backslashreplace")


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Say a library's warning in our voice, without a place in its code."""
    del category, filename, lineno, file, line
    say(f"warning: {escaped(str(message))}")


def _explained(error: Exception) -> str:
    match error:
        case OSError(strerror=str(reason), filename=name):
            place = f": `{escaped(str(name))}`" if name else ""
            return (
                f"error: the system refused to go on: {reason.lower()}{place}\n\n"
                "hint: `SERIATIM_DEBUG=1` shows in the midst of what"
            )
        case _:
            return (
                f"error: seriatim failed: {clause(error)}\n\n"
                "hint: this is a fault of ours; run it again with `SERIATIM_DEBUG=1` for the "
                "traceback"
            )


def _explain(error: click.ClickException) -> int:
    """Say in our voice what the parser found wrong, and return the exit code."""
    message, _, suggestion = error.format_message().partition(" Did you mean ")
    problem = message.replace("'", "`").removesuffix(".")
    named = suggestion.partition("?")[0].replace("'", "`")
    hint = f"did you mean {named}?" if named else _SEE_HELP
    say(f"error: {problem[:1].lower()}{problem[1:]}\n\nhint: {hint}")
    return error.exit_code
