"""`seriatim init`: a workspace out of the servers that a client has already."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, assert_never, final

import mcp_types
import typer

from seriatim.cli.init_files import AGENT, servers_text
from seriatim.cli.init_plan import Plan, plan_files
from seriatim.cli.init_present import present_in
from seriatim.cli.init_source import LeftOut, SourceError, read_source
from seriatim.cli.init_variables import Variable
from seriatim.cli.lines import escaped
from seriatim.cli.signals import Done, Interrupted
from seriatim.cli.starting import carry_out
from seriatim.cli.voice import FAILED, WRONG_USAGE, say, stop
from seriatim.runtime.servers.running import open_servers
from seriatim.topology import ServerDefinition


@final
@dataclass(frozen=True, slots=True)
class _Answers:
    """What the servers said when they were asked for their tools.

    Attributes:
        problems: server -> why it did not answer.
    """

    tools: Mapping[str, Mapping[str, mcp_types.Tool]]
    problems: Mapping[str, str]


def init(
    source: Annotated[
        Path,
        typer.Option(
            "--from",
            metavar="FILE",
            help="A client's file of MCP servers: `.mcp.json`, `claude_desktop_config.json`, "
            "`.cursor/mcp.json`, `.vscode/mcp.json`.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the workspace goes.")] = Path(
        "seriatim"
    ),
) -> None:
    """Write a workspace out of the MCP servers that a client has already.

    Each server is started and asked for its tools. The workspace gets one skill a tool, and an
    agent that holds them all, with a place for its order rules (`requires:`).

    Values of `env` and of headers, which may be secrets, are not written: variables of the
    environment stand for them, and the workspace says which.

    No file that is there is changed, so that it can be run again: what is new is written beside the
    rest where that is safe, and told in any case. The paths of the files that were written go to
    stdout.

    Exit status: 0 when every server answered; 1 when one did not, or cannot be used, and all else
    was written; 2 when there is nothing to read, or the command was used wrongly.

    Example: seriatim init --from .mcp.json --out seriatim
    """
    if out.exists() and not out.is_dir():
        stop(
            f"`{escaped(str(out))}` is no directory",
            hint="give a directory with `--out`; it is made when it is not there",
            code=WRONG_USAGE,
        )
    try:
        found = read_source(source, out)
    except SourceError as error:
        stop(escaped(str(error)), hint=error.hint, code=WRONG_USAGE)
    present = present_in(out)
    asked = [present.servers.get(server.id, server) for server in found.servers]
    environ = found.variables.environment(os.environ)
    match carry_out(partial(_ask, asked, environ, out)):
        case Done(answers):
            pass
        case Interrupted(code):
            say("interrupted; nothing was written")
            raise typer.Exit(code)
        case ended:
            assert_never(ended)
    _tell_of_servers(found.left_out, answers)
    plan = plan_files(out, found, present, answers.tools)
    for path in _write(plan.files):
        typer.echo(str(path))
    _tell_what_is_left(plan, out)
    if out / "workspace.yaml" in plan.files:
        _tell_of_variables(found.variables.all)
    if plan.files:
        say(
            f"next: say what comes first in `{out}/topologies`, check it with `seriatim validate "
            f"{out}`, and put it to use with `seriatim gateway {out} --agent {AGENT} "
            "--print-config claude-code`"
        )
    unusable = [each for each in found.left_out if not each.on_purpose]
    raise typer.Exit(FAILED if answers.problems or unusable else 0)


async def _ask(
    servers: Sequence[ServerDefinition], environ: Mapping[str, str], directory: Path
) -> _Answers:
    """Start the servers, and ask each for its tools."""
    say(f"asking {len(servers)} server{'' if len(servers) == 1 else 's'} for their tools")
    async with open_servers(servers, environ, directory) as running:
        problems = running.problems()
        tools = {
            server.id: dict(running.tools(server.id))
            for server in servers
            if server.id not in problems
        }
        return _Answers(tools, problems)


def _tell_of_servers(left_out: Sequence[LeftOut], answers: _Answers) -> None:
    for server, tools in answers.tools.items():
        say(f"server {server}: {_counted(len(tools), 'tool')}")
    for server, detail in answers.problems.items():
        say(f"server {server} does not answer: {escaped(detail)}")
    for each in left_out:
        say(f"server {escaped(each.name)} is left out: {each.reason}")


def _write(files: Mapping[Path, str]) -> Iterator[Path]:
    """Write files that are not there, and yield each; leaves when one cannot be written."""
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            stop(
                f"cannot write `{escaped(str(path))}`: {reason}",
                hint="give another directory with `--out`",
                code=FAILED,
            )
        yield path


def _tell_what_is_left(plan: Plan, out: Path) -> None:
    """Say what is new and what is gone, where files that are there stay as they are."""
    say(f"{_counted(len(plan.files), 'file')} written, {_counted(len(plan.new), 'new skill')}")
    for tool in plan.ungranted:
        say(f"new: `{tool.id}` of server {tool.ref.server}; an agent that is to have it names it")
    for skill, ref in plan.gone.items():
        say(f"gone: server {ref.server} no longer lists the tool of skill `{skill}`")
    if plan.undefined:
        say(
            f"new servers: add them to `mcp_servers` in `{out}/workspace.yaml`, and run this "
            f"again\n\n{servers_text(plan.undefined, out)}"
        )


def _tell_of_variables(variables: Sequence[Variable]) -> None:
    if variables:
        say("set these variables before it is used:")
    for variable in variables:
        say(f"  {variable.name}: {variable.whence}")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
