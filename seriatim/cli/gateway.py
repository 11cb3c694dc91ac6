"""`seriatim gateway`: an agent's tools for a harness, over stdio or streamable HTTP."""

import os
import socket
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Final, TypeAlias, assert_never, final

import anyio
import typer

from interceptors import AgentId, RunId
from seriatim.cli.lines import escaped
from seriatim.cli.opening import (
    checked_run_id,
    chosen_topology,
    expect_variables,
    place_of_audit,
    sound_workspace,
    telemetry_for,
)
from seriatim.cli.signals import Done, Interrupted, until_signalled
from seriatim.cli.voice import FAILED, WRONG_USAGE, say, stop
from seriatim.runtime.dispatch import NO_LIMIT
from seriatim.runtime.gateway import gateway_for_process, gateway_for_tokens
from seriatim.runtime.http import Address, http_app, listen, serve_http, url_of
from seriatim.runtime.plugins import InterceptorError
from seriatim.runtime.registrations import Registrations, registration
from seriatim.runtime.run import Observers, Run, open_run
from seriatim.runtime.stdio import Wire, claimed_stdout, serve_stdio
from seriatim.stores.errors import AuditStoreError
from seriatim.stores.places import SqlitePlace, open_audit
from seriatim.stores.rows import json_text
from seriatim.topology import Topology, Workspace
from seriatim.topology.problems import listing, suggestion
from telemetry.switch import Telemetry

HIGHEST_PORT: Final = 65535


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


@final
@dataclass(frozen=True, slots=True)
class _Plan:
    """All that is settled before anything starts."""

    run: RunId
    workspace: Workspace
    topology: Topology
    agents: tuple[AgentId, ...]
    front: _Front
    place: SqlitePlace


@final
@dataclass(frozen=True, slots=True)
class _Trouble:
    """Why the gateway did not start."""

    problem: str
    hint: str


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
) -> None:
    """Serve an agent's tools to a harness, in the order that the topology asks for.

    Over stdio the harness starts this command, and the gateway ends when its stdin is closed. Over
    HTTP the gateway prints one JSON line for each agent when it is ready, with the URL and the
    bearer token of that agent, and serves until it is told to stop (SIGINT or SIGTERM).

    Exit status: 0 when it came to an end as above; 1 when it could not start; 2 when the command
    was used wrongly.

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
    workspace = sound_workspace(path)
    chosen = chosen_topology(workspace, topology)
    ids = tuple(_agent(chosen, name) for name in names)
    place = place_of_audit(audit, workspace)
    expect_variables(workspace, chosen, ids)
    telemetry = telemetry_for(otlp)
    front = _Http(ids, address, _listener(address)) if address else _Stdio(*ids)
    plan = _Plan(id_, workspace, chosen, ids, front, place)
    with telemetry, front.listener if isinstance(front, _Http) else nullcontext():
        ended = anyio.run(until_signalled, partial(_serve, plan, telemetry))
    match ended:
        case Done(_Trouble(problem, hint)):
            stop(problem, hint=hint, code=FAILED)
        case Done() | Interrupted():
            say(f"run {plan.run}: the gateway has stopped")
        case _:
            assert_never(ended)


async def _serve(plan: _Plan, telemetry: Telemetry) -> _Trouble | None:
    """Start what the agents need, serve them until the end, and stop it all."""
    try:
        # First of all: whatever prints, an interceptor that is imported perhaps, prints to stderr.
        with claimed_stdout() as wire:
            async with (
                open_audit(plan.place) as sink,
                open_run(
                    plan.run,
                    plan.workspace,
                    plan.topology,
                    plan.agents,
                    audit=sink,
                    max_calls=plan.workspace.settings.max_calls or NO_LIMIT,
                    environ=os.environ,
                    observers=Observers(telemetry),
                ) as run,
            ):
                for server, detail in run.servers.problems().items():
                    say(f"server {server} is not available: {escaped(detail)}")
                match plan.front:
                    case _Stdio(agent):
                        say(f"run {run.id}: {agent} is served over stdio")
                        served = gateway_for_process(registration(run, agent))
                        await serve_stdio(served, wire)
                    case _Http() as front:
                        await _serve_http(run, front, wire)
                    case _:
                        assert_never(plan.front)
    except InterceptorError as error:
        return _Trouble(escaped(str(error)), "correct `interceptors` in the settings")
    except AuditStoreError as error:
        return _Trouble(error.message, error.hint)
    return None


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


def _agent(topology: Topology, name: str) -> AgentId:
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
