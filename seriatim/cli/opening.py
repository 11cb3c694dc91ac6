"""What `run`, `gateway` and `harness` settle before anything starts.

Each function leaves when it cannot.
"""

import os
import sys
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import typer

from interceptors import AgentId, RunId, new_id
from seriatim.cli.lines import escaped
from seriatim.cli.paint import paint_for
from seriatim.cli.voice import FAILED, WRONG_USAGE, say, stop
from seriatim.runtime.run import RUN_ID
from seriatim.runtime.servers.expansion import MissingVariableError, expand
from seriatim.stores.errors import UnknownPlaceError
from seriatim.stores.places import SqlitePlace, chosen_place
from seriatim.topology import (
    Broken,
    EnvironmentSettingError,
    NothingToValidateError,
    Topology,
    Workspace,
    as_text,
    load,
    summary,
    with_environment,
)
from seriatim.topology.problems import listing, suggestion
from telemetry.settings import TelemetrySettingError
from telemetry.switch import Telemetry, start_telemetry


def sound_workspace(path: Path, *, pin: bool) -> Workspace:
    """Return the workspace at `path` with the settings of the environment.

    Its problems are printed as `validate` prints them, but on stderr. Leaves when there are errors,
    or nothing to load.

    Args:
        pin: pin the tools, whatever the settings say.
    """
    try:
        loaded = load(path)
    except NothingToValidateError as error:
        stop(str(error), hint=error.hint, code=WRONG_USAGE)
    if loaded.problems:
        say(f"{as_text(loaded.problems, paint_for(sys.stderr))}\n")
    if isinstance(loaded, Broken):
        say(summary(loaded.problems, loaded.files))
        raise typer.Exit(FAILED)
    workspace = loaded.workspace
    try:
        settings = with_environment(workspace.settings, os.environ)
    except EnvironmentSettingError as error:
        stop(str(error), hint=error.hint, code=WRONG_USAGE)
    return replace(workspace, settings=replace(settings, pin=settings.pin or pin))


def chosen_topology(workspace: Workspace, name: str) -> Topology:
    """Return the topology of that name, or the only one when none is named; leaves otherwise."""
    known = workspace.topologies
    if not known:
        stop("the workspace has no topology", hint="put one into `topologies/`", code=WRONG_USAGE)
    if name in known:
        return known[name]
    if name:
        stop(
            f"the workspace has no topology `{name}`",
            hint=suggestion(name, known, f"its topologies are {listing(known)}"),
            code=WRONG_USAGE,
        )
    if len(known) > 1:
        stop(
            "the workspace has several topologies",
            hint=f"choose one with `--topology`: {', '.join(f'`{each}`' for each in known)}",
            code=WRONG_USAGE,
        )
    return next(iter(known.values()))


def chosen_agent(topology: Topology, name: str) -> AgentId:
    """Return the id of one of the topology's agents; leaves when there is none of that name."""
    agent = AgentId(name)
    if agent not in topology.agents:
        stop(
            f"topology `{topology.name}` has no agent `{escaped(name)}`",
            hint=" ".join(
                part
                for part in (
                    suggestion(name, topology.agents, ""),
                    f"its agents are {listing(topology.agents)}",
                )
                if part
            ),
            code=WRONG_USAGE,
        )
    return agent


def checked_run_id(text: str) -> RunId:
    """Return the run id that was given, or a fresh one when none was."""
    if text and not RUN_ID.fullmatch(text):
        stop(
            f"`{escaped(text)}` cannot be the id of a run",
            hint="use letters, digits, `.`, `_` and `-`, at most 64 of them",
            code=WRONG_USAGE,
        )
    return RunId(text or new_id())


def place_of_audit(url: str, workspace: Workspace) -> SqlitePlace:
    """Return where the audit log is: where `--audit` says, or else the settings."""
    try:
        return chosen_place(url, workspace.settings.audit, workspace.directory)
    except UnknownPlaceError as error:
        stop(error.message, hint=error.hint, code=WRONG_USAGE)


def expect_variables(workspace: Workspace, topology: Topology, agents: Collection[AgentId]) -> None:
    """Leave when the definition of a server that `agents` need names a variable that is not set."""
    skills = [skill for agent in agents for skill in topology.agents[agent].skills]
    try:
        for server in dict.fromkeys(skill.tool.server for skill in skills):
            expand(workspace.servers[server], os.environ)
    except MissingVariableError as error:
        stop(str(error), hint=f"set `{error.variable}`", code=FAILED)


def telemetry_for(otlp: str) -> Telemetry:
    """Return telemetry as the environment and `--otlp` ask for it."""
    try:
        return start_telemetry(os.environ, otlp, say=say)
    except TelemetrySettingError as error:
        stop(str(error), hint=error.hint, code=WRONG_USAGE)
