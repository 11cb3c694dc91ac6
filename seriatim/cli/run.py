"""`seriatim run`: a topology at work, driven by models, harnesses or a script."""

import io
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Final, assert_never

import typer

from interceptors import AgentId
from seriatim.cli.lines import escaped
from seriatim.cli.opening import (
    checked_run_id,
    chosen_topology,
    expect_variables,
    place_of_audit,
    sound_workspace,
    telemetry_for,
)
from seriatim.cli.options import AuditPlace, OtlpEndpoint, Pinned, TopologyName, WorkspacePath
from seriatim.cli.paint import paint_for
from seriatim.cli.progress import Progress
from seriatim.cli.result import Result, exit_code, print_result, summary
from seriatim.cli.signals import Done, Interrupted
from seriatim.cli.starting import Plan, carry_out, started
from seriatim.cli.voice import FAILED, WRONG_USAGE, Format, for_a_reader, say, stop
from seriatim.runtime.events import Event, Tally
from seriatim.runtime.gateway.stdio import claimed_stdout
from seriatim.runtime.model.model_loop import Driver, run_topology
from seriatim.runtime.model.providers import ModelChoiceError, named_model, own_model
from seriatim.runtime.model.script import ScriptError, read_script
from seriatim.runtime.model.scripted import scripted_model
from seriatim.stores.errors import AuditStoreError
from seriatim.stores.places import SqlitePlace, has_run
from seriatim.topology import (
    Agent,
    HarnessExecutor,
    ModelExecutor,
    Topology,
    Workspace,
    as_text,
)
from seriatim.topology.settings import DEFAULT_CALLS
from telemetry.switch import Telemetry

STDIN: Final = "-"
"""What `--input` says to have the text read from stdin."""


def run(
    path: WorkspacePath,
    task: Annotated[
        str, typer.Option("--input", help="What the root agent is to do; `-` reads it from stdin.")
    ],
    topology: TopologyName = "",
    run_id: Annotated[
        str,
        typer.Option("--run", help="The id of the run; a fresh one otherwise.", show_default=False),
    ] = "",
    model: Annotated[
        str,
        typer.Option(
            help="PROVIDER:MODEL for all agents, instead of each agent's own model or harness.",
            show_default=False,
        ),
    ] = "",
    script: Annotated[
        Path | None,
        typer.Option(
            help="A script that plays the models; needs no key and no network.",
            show_default=False,
        ),
    ] = None,
    max_calls: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Calls that the run may make, refused ones and delegations included. "
            "[default: 200, or what the workspace says]",
            show_default=False,
        ),
    ] = None,
    pin: Pinned = False,
    audit: AuditPlace = "",
    otlp: OtlpEndpoint = "",
    format_: Annotated[
        Format, typer.Option("--format", help="How the result is printed.")
    ] = "text",
) -> None:
    """Run a topology: the root agent gets the input, and its last text is printed.

    An agent whose `executor:` is a harness is driven by that: the harness gets the task on stdin,
    and what it writes to stdout is the agent's answer. With `--script` it is, unless the script
    plays its part.

    What happens is told on stderr as it happens, and is in the audit log afterwards.

    Exit status: 0 when the root agent came to an end, whatever was refused or failed on the way; 1
    when the topology has errors, a model or harness gave no answer, or the calls ran out; 2 when
    the command was used wrongly.

    Example: seriatim run examples/conventions --topology ordered --input "How do consoles confirm?"
    """
    if model and script:
        stop("`--model` and `--script` exclude each other", hint="give one", code=WRONG_USAGE)
    id_ = checked_run_id(run_id)
    workspace = sound_workspace(path, pin=pin)
    chosen = chosen_topology(workspace, topology)
    drivers = _scripted(script, chosen) if script else _own(model, chosen)
    task = _task(task)
    place = _new_place(audit, workspace, run_id)
    calls = max_calls or workspace.settings.max_calls or DEFAULT_CALLS
    plan = Plan(id_, workspace, chosen, tuple(chosen.agents), place, calls)
    expect_variables(workspace, chosen, plan.agents)
    # Whatever prints meanwhile, an interceptor perhaps: stdout is for the result alone.
    with claimed_stdout(), telemetry_for(otlp) as telemetry:
        ended = carry_out(partial(_play, plan, drivers, task, telemetry))
    match ended:
        case Done(result):
            with for_a_reader():
                print_result(result, format_)
            say(summary(result) + _where_shown(result, path, audit))
            raise typer.Exit(exit_code(result.ending))
        case Interrupted(code):
            say(f"run {plan.run} was interrupted; its calls are in the audit log")
            raise typer.Exit(code)
        case _:
            assert_never(ended)


async def _play(
    plan: Plan, drivers: Mapping[AgentId, Driver], task: str, telemetry: Telemetry
) -> Result:
    """Start what the run needs, let the agents work, and stop it all."""
    say(f"run {plan.run}")
    tally = Tally()
    async with started(plan, telemetry) as run:
        progress = Progress(run.redactor, plan.topology)

        def tell(event: Event) -> None:
            tally(event)
            progress(event)

        ending = await run_topology(run, drivers, task, tell)
    return Result(plan.run, ending, tally.agents)


def _where_shown(result: Result, path: Path, audit: str) -> str:
    """Return, as the end of a sentence, the command that shows the rows of a run that has any."""
    if not any(count.calls or count.delegations for count in result.agents.values()):
        return ""
    place = ["--audit", audit] if audit else []
    command = shlex.join(["seriatim", "logs", str(path), "--run", result.run, *place])
    return f"; `{command}` shows them"


def _task(text: str) -> str:
    if text == STDIN:
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")
        text = sys.stdin.read()
    if not text.strip():
        stop(
            "the input is empty",
            hint="give the task with `--input TEXT`, or on stdin with `--input -`",
            code=WRONG_USAGE,
        )
    return text


def _new_place(audit: str, workspace: Workspace, run_id: str) -> SqlitePlace:
    """Return where the audit log is; leaves when it holds the run already."""
    place = place_of_audit(audit, workspace)
    try:
        known = bool(run_id) and has_run(place, run_id)
    except AuditStoreError as error:
        stop(error.message, hint=error.hint, code=FAILED)
    if known:
        stop(
            f"there is a run `{run_id}` already",
            hint="give another id, or none: a fresh one is made",
            code=WRONG_USAGE,
        )
    return place


def _scripted(file: Path, topology: Topology) -> Mapping[AgentId, Driver]:
    # A pipe will do, such as a shell's `<(...)`.
    if not file.exists() or file.is_dir():
        stop(
            f"there is no file `{escaped(str(file))}`",
            hint="give a script, or leave `--script` out to run with models",
            code=WRONG_USAGE,
        )
    try:
        script = read_script(file, str(file), topology.agents)
    except ScriptError as error:
        say(f"{as_text(error.problems, paint_for(sys.stderr))}\n")
        raise typer.Exit(WRONG_USAGE) from error
    return {
        id_: _harness(agent, agent.executor)
        if isinstance(agent.executor, HarnessExecutor) and id_ not in script
        else scripted_model(script, id_)
        for id_, agent in topology.agents.items()
    }


def _own(name: str, topology: Topology) -> Mapping[AgentId, Driver]:
    try:
        if name:
            return {
                id_: named_model(name, agent, os.environ) for id_, agent in topology.agents.items()
            }
        return {id_: _driver(agent) for id_, agent in topology.agents.items()}
    except ModelChoiceError as error:
        stop(escaped(str(error)), hint=error.hint, code=WRONG_USAGE)


def _driver(agent: Agent) -> Driver:
    match agent.executor:
        case ModelExecutor():
            return own_model(agent, os.environ)
        case HarnessExecutor() as harness:
            return _harness(agent, harness)
        case _:
            assert_never(agent.executor)


def _harness(agent: Agent, harness: HarnessExecutor) -> HarnessExecutor:
    """Return the harness; leaves when it cannot be started."""
    otherwise = "or let a model drive the agent with `--model PROVIDER:MODEL`"
    if not harness.command:
        stop(
            f"it is not known how to start the harness of agent `{agent.id}`",
            hint=f"give `config: {{command: [PROGRAM]}}` in its `executor:`, {otherwise}",
            code=WRONG_USAGE,
        )
    if shutil.which(harness.command[0]) is None:
        stop(
            f"there is no command `{escaped(harness.command[0])}`, the harness of agent "
            f"`{agent.id}`",
            hint=f"install it, {otherwise}",
            code=WRONG_USAGE,
        )
    return harness
