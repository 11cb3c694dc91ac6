"""`seriatim gateway`: an agent's tools for a harness, over stdio or streamable HTTP."""

import socket
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Final, TypeAlias, assert_never, final

import anyio
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
from seriatim.cli.snippets import absolute, print_http, print_stdio
from seriatim.cli.starting import Plan, carry_out, started
from seriatim.cli.voice import FAILED, WRONG_USAGE, say, stop
from seriatim.runtime.dispatch import NO_LIMIT
from seriatim.runtime.gateway import gateway_for_process, gateway_for_tokens
from seriatim.runtime.harness_config import Client
from seriatim.runtime.http import Address, http_app, listen, serve_http, url_of
from seriatim.runtime.registrations import Registrations, registration
from seriatim.runtime.run import Run
from seriatim.runtime.stdio import Wire, claimed_stdout, serve_stdio
from seriatim.stores.rows import json_text
from telemetry.switch import Telemetry

HIGHEST_PORT: Final = 65535
PATIENCE: Final = 5.0
"""Seconds that servers may keep a harness waiting, which gives up on us after ten or more; the
tools of a server that is slower are told of when they are known."""


@final
@dataclass(frozen=True, slots=True)
class _Stdio:
    """The client is whoever started this process."""

    agent: AgentId


@final
@dataclass(frozen=True, slots=True)
class _Http:
    """Clients come to a socket, each with a token."""

    agents: tuple[AgentId, ...]
    address: Address
    listener: socket.socket


_Front: TypeAlias = _Stdio | _Http


def gateway(
    path: Annotated[
        Path, typer.Argument(help="A workspace directory, or one file that holds a topology.")
    ],
    agents: Annotated[
        list[str],
        typer.Option("--agent", help="The agent to serve; with `--http` there may be several."),
    ],
    topology: Annotated[
        str, typer.Option(help="Which topology, where there are several.", show_default=False)
    ] = "",
    run_id: Annotated[
        str,
        typer.Option(
            "--run",
            help="The id of the run to join or to begin; fresh otherwise.",
            show_default=False,
        ),
    ] = "",
    http: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="Serve over streamable HTTP instead of stdio; port 0 takes any free one.",
            show_default=False,
        ),
    ] = "",
    pin: Annotated[
        bool,
        typer.Option("--pin", help="Refuse calls of tools that change while the run goes on."),
    ] = False,
    audit: Annotated[
        str,
        typer.Option(
            help="Where the audit log is: a path, or `sqlite:///PATH`.",
            show_default=False,
        ),
    ] = "",
    otlp: Annotated[
        str,
        typer.Option(
            help="Send traces and metrics to this OTLP endpoint, such as http://localhost:4318.",
            show_default=False,
        ),
    ] = "",
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
    bearer token of that agent, and serves until it is told to stop (SIGINT or SIGTERM).

    Exit status: 0 when it came to an end as above; 1 when it could not start; 2 when the command
    was used wrongly.

    `--print-config` prints what to put into a client's own file: by default with the command that
    starts the gateway, with `--http` with its URL and a place for the token.

    Example: seriatim gateway examples/conventions --topology ordered --agent builder
    """
    names = tuple(dict.fromkeys(agents))
    if len(names) > 1 and not http:
        stop(
            "over stdio a gateway serves one agent",
            hint="give `--agent` once, or serve over HTTP with `--http 127.0.0.1:0`",
            code=WRONG_USAGE,
        )
    id_ = checked_run_id(run_id)
    address = _address(http) if http else None
    workspace = sound_workspace(path, pin=pin)
    chosen = chosen_topology(workspace, topology)
    ids = tuple(chosen_agent(chosen, name) for name in names)
    if print_config and address:
        print_http(print_config, names, address)
    if print_config:
        given = {"--topology": topology, "--run": run_id, "--audit": absolute(audit)}
        print_stdio(print_config, path, names[0], {**given, "--otlp": otlp})
    place = place_of_audit(audit, workspace)
    calls = workspace.settings.max_calls or NO_LIMIT
    plan = Plan(id_, workspace, chosen, ids, place, calls, PATIENCE, interactive=True)
    expect_variables(workspace, chosen, ids)
    telemetry = telemetry_for(otlp)
    front = _Http(ids, address, _listener(address)) if address else _Stdio(*ids)
    with telemetry, front.listener if isinstance(front, _Http) else nullcontext():
        # However it ends, by the client's leave or by a signal, it ends as it is meant to.
        carry_out(partial(_serve, plan, front, telemetry))
    say(f"run {plan.run}: the gateway has stopped")


async def _serve(plan: Plan, front: _Front, telemetry: Telemetry) -> None:
    """Start what the agents need, serve them until the end, and stop it all."""
    # First of all: whatever prints, an interceptor that is imported perhaps, prints to stderr.
    with claimed_stdout() as wire:
        async with started(plan, telemetry) as run:
            match front:
                case _Stdio(agent):
                    say(f"run {run.id}: {agent} is served over stdio")
                    await serve_stdio(gateway_for_process(registration(run, agent)), wire)
                case _Http():
                    await _serve_http(run, front, wire)
                case _:
                    assert_never(front)


async def _serve_http(run: Run, front: _Http, wire: Wire) -> None:
    if not front.address.is_loopback:
        say(
            f"warning: other machines can reach `{front.address.host}`, and tokens travel to it "
            "unencrypted"
        )
    registrations = Registrations()
    url = url_of(front.address, front.listener)
    lines = []
    for agent in front.agents:
        token = registrations.add(registration(run, agent))
        lines.append(json_text({"url": url, "token": token, "run": run.id, "agent": agent}))
    app = http_app(gateway_for_tokens(registrations), registrations, front.address)
    ready = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve_http, app, front.listener, ready)
        await ready.wait()
        say(f"run {run.id}: {', '.join(front.agents)} served at {url}")
        try:
            await wire.write("".join(f"{line}\n" for line in lines))
        except BrokenPipeError:
            # Nobody has the tokens, and nobody can ask for them again.
            tasks.cancel_scope.cancel()


def _address(text: str) -> Address:
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) <= HIGHEST_PORT):
        stop(
            f"`{escaped(text)}` is no HOST:PORT",
            hint="write for instance `127.0.0.1:8000`, or port 0 for any free one",
            code=WRONG_USAGE,
        )
    return Address(host, int(port))


def _listener(address: Address) -> socket.socket:
    try:
        return listen(address)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).partition(" (")[0].lower()
        stop(
            f"cannot listen on `{escaped(address.host)}:{address.port}`: {reason}",
            hint="choose another address, or port 0 for any free one",
            code=FAILED,
        )
