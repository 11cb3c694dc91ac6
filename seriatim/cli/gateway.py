"""`seriatim gateway`: an agent's tools for a harness, over stdio or streamable HTTP."""

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Final, assert_never

import anyio
import typer

from interceptors import AgentId, JsonValue, Via
from seriatim.cli.fronts import HttpOptions, Stdio, address_of, encryption_of, open_http, stdio_for
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
from seriatim.cli.snippets import absolute, print_http, print_stdio
from seriatim.cli.starting import Plan, StartError, carry_out, started
from seriatim.cli.voice import WRONG_USAGE, say, stop
from seriatim.runtime.assembly import assemble
from seriatim.runtime.dispatch import NO_LIMIT
from seriatim.runtime.gateway.admin import described
from seriatim.runtime.gateway.front import Front, serving
from seriatim.runtime.gateway.register import RegistrationError
from seriatim.runtime.gateway.registrations import registration
from seriatim.runtime.gateway.server import gateway_for
from seriatim.runtime.gateway.stdio import Wire, claimed_stdout, serve_stdio
from seriatim.runtime.harness.config import Client
from seriatim.runtime.run import Run
from seriatim.stores.rows import json_text
from seriatim.topology import Topology
from telemetry.switch import Telemetry

PATIENCE: Final = 5.0
"""Seconds that servers may keep a harness waiting, which gives up on us after ten or more; the
tools of a server that is slower are told of when they are known."""


def gateway(
    path: WorkspacePath,
    agents: Annotated[
        list[str] | None,
        typer.Option(
            "--agent",
            help="The agent to serve; with `--http` there may be several.",
            show_default=False,
        ),
    ] = None,
    topology: TopologyName = "",
    run_id: JoinedRun = "",
    http: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="Serve over streamable HTTP instead of stdio; port 0 takes any free one.",
            show_default=False,
        ),
    ] = "",
    pin: Pinned = False,
    ttl: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="How long a token is good for, such as 8h; otherwise as long as the gateway runs.",
            show_default=False,
        ),
    ] = "",
    tls_cert: Annotated[
        Path | None,
        typer.Option(help="A PEM file with the certificate for https.", show_default=False),
    ] = None,
    tls_key: Annotated[
        Path | None,
        typer.Option(help="The PEM file with its private key.", show_default=False),
    ] = None,
    admin_token_file: Annotated[
        Path | None,
        typer.Option(
            help="A file with the token of the admin API, which is off without one.",
            show_default=False,
        ),
    ] = None,
    audit: AuditPlace = "",
    otlp: OtlpEndpoint = "",
    print_config: Annotated[
        Client | None,
        typer.Option(
            help="Print how this client is told to use the gateway, and start nothing.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Serve an agent's tools to a harness, in the order that the topology asks for.

    Over stdio the harness starts this command, and the gateway ends when its stdin is closed. Over
    HTTP the gateway prints one JSON line for each agent when it is ready, with the URL and the
    bearer token of that agent, and serves until it is told to stop (SIGINT or SIGTERM). With an
    admin token (`--admin-token-file`, or `SERIATIM_ADMIN_TOKEN` in the environment) agents can be
    registered and ended while it runs.

    Exit status: 0 when it came to an end as above; 1 when it could not start; 2 when the command
    was used wrongly.

    `--print-config` prints what to put into a client's own file: by default with the command that
    starts the gateway, with `--http` with its URL and a place for the token.

    Example: seriatim gateway examples/conventions --topology ordered --agent builder
    """
    id_ = checked_run_id(run_id)
    asked = HttpOptions(http, ttl, tls_cert, tls_key, admin_token_file)
    workspace = sound_workspace(path, pin=pin)
    chosen = chosen_topology(workspace, topology)
    ids = _agents(chosen, agents or ())
    if print_config and http:
        print_http(print_config, ids, address_of(asked), encryption_of(asked))
    if print_config:
        given = {"--topology": topology, "--run": run_id, "--audit": absolute(audit)}
        agent = stdio_for(asked, ids).agent
        print_stdio(print_config, path, agent, {**given, "--otlp": otlp}, pin=pin)
    front = open_http(asked, ids, workspace.settings) if http else stdio_for(asked, ids)
    with front.listener if isinstance(front, Front) else nullcontext():
        # Where any agent may come later, the servers of all are needed.
        later = isinstance(front, Front) and (front.admin or workspace.settings.auth)
        driven = tuple(chosen.agents) if later else ids
        place = place_of_audit(audit, workspace)
        calls = workspace.settings.max_calls or NO_LIMIT
        plan = Plan(id_, workspace, chosen, driven, place, calls, PATIENCE, interactive=True)
        expect_variables(workspace, chosen, driven)
        telemetry = telemetry_for(otlp)
        with telemetry:
            # However it ends, by the client's leave or by a signal, it ends as it is meant to.
            carry_out(partial(_serve, plan, ids, front, telemetry))
    say(f"run {plan.run}: the gateway has stopped")


async def _serve(
    plan: Plan, agents: tuple[AgentId, ...], front: Stdio | Front, telemetry: Telemetry
) -> None:
    """Start what the agents need, serve them until the end, and stop it all."""
    # First of all: whatever prints, an interceptor that is imported perhaps, prints to stderr.
    with claimed_stdout() as wire:
        async with started(plan, telemetry) as run:
            match front:
                case Stdio(agent):
                    gateway = gateway_for(registration(run, agent))
                    say(f"run {run.id}: {agent} is served over stdio")
                    await serve_stdio(gateway, wire)
                case Front():
                    await _serve_http(run, agents, front, wire)
                case _:
                    assert_never(front)


async def _serve_http(run: Run, agents: tuple[AgentId, ...], front: Front, wire: Wire) -> None:
    # Whoever comes later needs the interceptors that cannot be had today, too.
    assemble(run, run.topology.root, Via.GATEWAY)
    async with serving(front, run) as register:
        lines: list[dict[str, JsonValue]] = []
        for agent in agents:
            try:
                entry, token = await register.issue(run.id, agent, front.lifetime)
            except RegistrationError as error:
                problem = f"`{agent}` cannot be registered: {error}"
                hint = "raise `registrations` under `limits` in the settings"
                raise StartError(problem, hint) from error
            lines.append(described(entry, front.url) | {"token": token})
        if front.admin or run.workspace.settings.auth:
            admin = {"admin": front.admin_url} if front.admin else {}
            lines.append({"url": front.url, "run": run.id, **admin})
        named = ", ".join(agents) or "no agent yet"
        say(f"run {run.id}: {named} served at {front.url}")
        # With a broken pipe nobody has the tokens, and nobody can ask for them again.
        with suppress(BrokenPipeError):
            await wire.write("".join(f"{json_text(line)}\n" for line in lines))
            await anyio.sleep_forever()


def _agents(topology: Topology, names: Sequence[str]) -> tuple[AgentId, ...]:
    """Return the ids of agents of the topology; leaves when one is unknown, or named twice."""
    ids = tuple(chosen_agent(topology, name) for name in names)
    for agent, number in Counter(ids).items():
        if number > 1:
            stop(
                f"`--agent {escaped(agent)}` is given more than once",
                hint="give it once: an agent has one registration in a run",
                code=WRONG_USAGE,
            )
    return ids
