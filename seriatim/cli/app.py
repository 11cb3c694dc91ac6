"""The command line's table of contents: each command's name, module, and first line of help."""

import importlib
from typing import Annotated, Final

import click
import typer
import typer.main
from typer.core import TyperGroup

from seriatim import __version__
from seriatim.cli.voice import WRONG_USAGE, say

COMMANDS: Final = {
    "demo": "Show the gate at work; needs no key and no network.",
    "init": "Write a workspace out of the MCP servers that a client has.",
    "validate": "Say what is wrong with a workspace, and where.",
    "run": "Run a topology with a model, or with a script.",
    "gateway": "Serve an agent's tools to a harness.",
    "harness": "Start a harness that has an agent's tools, and no others of MCP.",
    "logs": "Print the audit log of a run.",
    "trace": "Print a run as a tree: agents, turns, calls, refusals.",
}
"""Command -> its help; the function of the same name in `seriatim.cli.<command>` is the command."""


class _Commands(TyperGroup):
    """Imports a command's module when it is called.

    `validate` runs in every editor and pull request, and would pay about a second for what only
    `run` and `gateway` need (mcp, pydantic-ai).
    """

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        command = typer.Typer(add_completion=False, rich_markup_mode=None)
        module = importlib.import_module(f"seriatim.cli.{name}")
        command.command(name)(getattr(module, str(name)))
        return name, typer.main.get_command(command), rest


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"seriatim {__version__}")
        raise typer.Exit


app: Final = typer.Typer(
    cls=_Commands, invoke_without_command=True, add_completion=False, rich_markup_mode=None
)


@app.callback()
def seriatim(
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
) -> None:
    """Order for the calls that LLM agents make to MCP tools.

    A topology says that one skill comes before another. A call out of order is refused, and the
    refusal says what to call first; every decision is in the audit log and in the trace.
    """
    if context.invoked_subcommand is None:
        say(context.get_help())
        raise typer.Exit(WRONG_USAGE)


def _listed() -> None:
    """Stand in the table of contents for a command that is not imported."""


for _name, _help in COMMANDS.items():
    app.command(_name, help=_help)(_listed)
