"""`seriatim harness`: a harness that is started with an agent's tools, and the gateway under it."""

import os
import shutil
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Final, assert_never, final

import typer

from interceptors import AgentId
from seriatim.cli.lines import escaped
from seriatim.cli.opening import (
    checked_run_id,
    chosen_agent,
    chosen_topology,
    expect_variables,
    place_of_audit,
    sound_workspace,
    telemetry_for,
)
from seriatim.cli.options import (
    AuditPlace,
    JoinedRun,
    OtlpEndpoint,
    Pinned,
    TopologyName,
    WorkspacePath,
)
from seriatim.cli.signals import Done, Interrupted
from seriatim.cli.starting import Plan, carry_out, started
from seriatim.cli.terminal_child import TOLD, TerminalChild
from seriatim.cli.voice import WRONG_USAGE, say, stop
from seriatim.runtime.dispatch import NO_LIMIT
from seriatim.runtime.gateway.stdio import claimed_stdout
from seriatim.runtime.harness.access import open_access
from seriatim.runtime.harness.config import TOKEN_VARIABLE
from seriatim.runtime.harness.forms import Manner, prepare
from seriatim.topology import Harness
from seriatim.topology.executors import PROGRAMS
from telemetry.switch import Telemetry

NOT_FOUND: Final = 127
"""Exit code when the command does not exist, as shells have it."""
NOT_STARTED: Final = 126
"""Exit code when the command exists, and cannot be started."""


@final
@dataclass(frozen=True, slots=True)
class _Command:
    """What to start for which agent, and how it is told where its tools are."""

    agent: AgentId
    harness: Harness
    command: tuple[str, ...]
    arguments: tuple[str, ...]


def harness(
    path: WorkspacePath,
    agent: Annotated[str, typer.Option(help="The agent whose tools the harness gets.")],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- COMMAND...",
            help="What to start, after `--`; with `--as` only arguments for the harness.",
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        Harness,
        typer.Option(
            "--as",
            help="Start this harness, and tell it in its own way where its tools are.",
            case_sensitive=False,
        ),
    ] = Harness.ANY,
    topology: TopologyName = "",
    run_id: JoinedRun = "",
    pin: Pinned = False,
    audit: AuditPlace = "",
    otlp: OtlpEndpoint = "",
) -> None:
    """Start a harness that has an agent's tools, in the order that the topology asks for.

    The gateway listens on a free port of this machine, for as long as the command runs. The command
    has the terminal, stdin and stdout, and gets the signals that this command gets.

    With `--as` the harness is started with its own flags, files and environment. Without, COMMAND
    is any MCP client: `{mcp_config}` in it becomes the path of a file with `mcpServers`, and
    `{url}` the address. Both are in the environment too (`SERIATIM_MCP_CONFIG`, `SERIATIM_URL`),
    beside the bearer token (`SERIATIM_TOKEN`). Only you can read the file, and it is gone when the
    command has ended.

    Exit status: the command's own; 128 and the number when a signal ended it; 127 when there is no
    such command, 126 when it cannot be started; 1 when the gateway could not start; 2 when this
    command was used wrongly.

    Examples: seriatim harness . --agent builder --as claude-code -- --model sonnet;
    seriatim harness . --agent builder -- my-client --config {mcp_config}
    """
    what = _command(agent, form, tuple(words or ()))
    id_ = checked_run_id(run_id)
    workspace = sound_workspace(path, pin=pin)
    chosen = chosen_topology(workspace, topology)
    chosen_agent(chosen, agent)
    place = place_of_audit(audit, workspace)
    calls = workspace.settings.max_calls or NO_LIMIT
    plan = Plan(id_, workspace, chosen, (what.agent,), place, calls, interactive=True)
    expect_variables(workspace, chosen, plan.agents)
    _expect(what.command[0])
    child = TerminalChild()
    with telemetry_for(otlp) as telemetry:
        ended = carry_out(partial(_drive, plan, what, child, telemetry), child.tell, TOLD)
    match ended:
        case Done(code):
            say(f"run {plan.run}: {escaped(what.command[0])} has ended with exit code {code}")
        case Interrupted(code):
            say(f"run {plan.run} was interrupted before the command was started")
        case _:
            assert_never(ended)
    raise typer.Exit(code)


async def _drive(plan: Plan, what: _Command, child: TerminalChild, telemetry: Telemetry) -> int:
    """Start what the agent needs, run the command to its end, and stop it all."""
    # Stdout is the command's alone, whatever an interceptor prints.
    with (
        claimed_stdout() as wire,
        tempfile.TemporaryDirectory(prefix="seriatim-", ignore_cleanup_errors=True) as directory,
    ):
        async with (
            started(plan, telemetry) as run,
            open_access(run, what.agent) as access,
        ):
            say(f"run {run.id}: {what.agent} is served to {escaped(what.command[0])}")
            try:
                launch = prepare(
                    what.harness,
                    what.command,
                    what.arguments,
                    Manner.AS_ASKED,
                    access,
                    Path(directory),
                )
                return await child.run(
                    launch.command, {**os.environ, **launch.environment}, wire.descriptor
                )
            except OSError as error:
                reason = (error.strerror or type(error).__name__).lower()
                say(f"error: cannot start `{escaped(what.command[0])}`: {reason}")
                return NOT_STARTED


def _command(agent: str, form: Harness, words: tuple[str, ...]) -> _Command:
    program = PROGRAMS[form]
    if program:
        return _Command(AgentId(agent), form, program, words)
    if not words or not words[0]:
        stop(
            "there is no command to start",
            hint="give one after `--`, or name a harness with `--as claude-code`",
            code=WRONG_USAGE,
        )
    if any("{token}" in word for word in words):
        stop(
            "a token may not stand on a command line, where everybody on the machine can read it",
            hint=f"let the command read `{{mcp_config}}`, or `{TOKEN_VARIABLE}` in its environment",
            code=WRONG_USAGE,
        )
    return _Command(AgentId(agent), form, words, ())


def _expect(command: str) -> None:
    """Leave when there is no such command, before anything is started for it."""
    if shutil.which(command) is not None:
        return
    if Path(command).is_file() and os.sep in command:
        stop(
            f"`{escaped(command)}` is no program that may be run",
            hint=f"make it executable: `chmod +x {escaped(command)}`",
            code=NOT_STARTED,
        )
    stop(
        f"there is no command `{escaped(command)}`",
        hint="install it, or give its path",
        code=NOT_FOUND,
    )
