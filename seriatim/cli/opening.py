"""What `run` and `gateway` do before anything starts: a sound workspace, and one topology of it."""

import os
from dataclasses import replace
from pathlib import Path

import typer

from seriatim.cli.voice import FAILED, WRONG_USAGE, say, stop
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


def sound_workspace(path: Path) -> Workspace:
    """Return the workspace at `path` with the settings of the environment.

    Its problems are printed as `validate` prints them, but on stderr. Leaves when there are errors,
    or nothing to load.
    """
    try:
        loaded = load(path)
    except NothingToValidateError as error:
        stop(str(error), hint=error.hint, code=WRONG_USAGE)
    if loaded.problems:
        say(f"{as_text(loaded.problems)}\n")
    if isinstance(loaded, Broken):
        say(summary(loaded.problems, loaded.files))
        raise typer.Exit(FAILED)
    workspace = loaded.workspace
    try:
        return replace(workspace, settings=with_environment(workspace.settings, os.environ))
    except EnvironmentSettingError as error:
        stop(str(error), hint=error.hint, code=WRONG_USAGE)


def chosen_topology(workspace: Workspace, name: str) -> Topology:
    """Return the topology of that name, or the only one when none is named; leaves otherwise."""
    known = workspace.topologies
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
            hint=f"choose one with `--topology`: {listing(known)}",
            code=WRONG_USAGE,
        )
    return next(iter(known.values()))
