"""A run: one execution of a topology, and all that its agents share."""

import math
import re
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, final

import anyio

from interceptors import (
    AgentId,
    AuditSink,
    Interceptor,
    Redactor,
    RunId,
)
from seriatim.runtime.dispatch import Allowance
from seriatim.runtime.engines import Engines
from seriatim.runtime.servers.audience import Audience
from seriatim.runtime.servers.drift import Drift
from seriatim.runtime.servers.news import ServerNews, ToolsListed, Watch, no_watch
from seriatim.runtime.servers.running import RunningServers, open_servers, secrets_of
from seriatim.topology.models import Topology, Workspace
from telemetry import (
    KnownNames,
    Recoveries,
    RunSpans,
    Telemetry,
    no_telemetry,
)

RUN_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
"""The shape of a run id that somebody gives (DESIGN.md, section 7)."""


@final
@dataclass(frozen=True, slots=True)
class Observers:
    """What watches the calls of a run from outside.

    Attributes:
        telemetry: where spans and metrics go; nothing is composed for what is off.
        watches: interceptors that only look, the first outside the second; inside telemetry's.
        servers: told what becomes of the servers; raises nothing.
    """

    telemetry: Telemetry = field(default_factory=no_telemetry)
    watches: tuple[Interceptor, ...] = ()
    servers: Watch = no_watch


@final
@dataclass(frozen=True, slots=True)
class Run:
    """What the agents of one run share.

    Attributes:
        audience: told when servers list other tools.
        names: the names that metrics may bear.
    """

    id: RunId
    workspace: Workspace
    topology: Topology
    servers: RunningServers
    engines: Engines
    audit: AuditSink
    redactor: Redactor
    allowance: Allowance
    observers: Observers
    spans: RunSpans
    audience: Audience
    names: KnownNames
    recoveries: Recoveries


@asynccontextmanager
async def open_run(
    run: RunId,
    workspace: Workspace,
    topology: Topology,
    agents: Collection[AgentId],
    *,
    audit: AuditSink,
    max_calls: int,
    environ: Mapping[str, str],
    observers: Observers,
    engines: Engines | None = None,
    interactive: bool = False,
    patience: float = math.inf,
) -> AsyncIterator[Run]:
    """Start the servers that `agents` need, and stop them when the run ends.

    Args:
        max_calls: calls that the run may make; `NO_LIMIT` for any number.
        environ: where `${VAR}` of the server definitions comes from.
        engines: what decides and remembers; ours, afresh, unless given.
        interactive: whether clients make the calls, who may be able to answer what servers ask.
        patience: seconds after which the run begins although servers have not answered yet.

    A server that does not start, for want of a variable or otherwise, is no error here: calls to it
    fail, and `servers.problems()` says why. It is tried again for as long as the run lasts.
    """
    needed = {skill.tool.server for agent in agents for skill in topology.agents[agent].skills}
    definitions = [server for server in workspace.servers.values() if server.id in needed]
    engines = engines or Engines()
    names = _names(topology, workspace)
    recoveries = Recoveries(names, observers.telemetry.meter_provider)
    redactor = Redactor(secrets_of(definitions, environ), workspace.settings.redact)
    spans = RunSpans(observers.telemetry.tracer_provider)
    audience = Audience()
    drift = Drift(
        run,
        topology.name,
        [topology.agents[agent] for agent in agents],
        audit=audit,
        redactor=redactor,
        spans=spans,
        telemetry=observers.telemetry,
        pin=workspace.settings.pin,
    )

    async def watch(news: ServerNews) -> None:
        if isinstance(news, ToolsListed):
            await audience.tell()
            news = drift.granted(news)
            await drift.record(news)
        await observers.servers(news)

    async with open_servers(
        definitions,
        environ,
        workspace.directory,
        patience=patience,
        interactive=interactive,
        pin=workspace.settings.pin,
        watch=watch,
    ) as servers:
        try:
            yield Run(
                id=run,
                workspace=workspace,
                topology=topology,
                servers=servers,
                engines=engines,
                audit=audit,
                redactor=redactor,
                allowance=Allowance(max_calls),
                observers=observers,
                spans=spans,
                audience=audience,
                names=names,
                recoveries=recoveries,
            )
        finally:
            recoveries.end(run)
            with anyio.CancelScope(shield=True):
                await engines.ledger.forget(run)


def _names(topology: Topology, workspace: Workspace) -> KnownNames:
    """Return the names that metrics may bear: of skills, and of users' interceptors as rules."""
    skills = {skill.id for agent in topology.agents.values() for skill in agent.skills}
    return KnownNames(skills | {setting.use for setting in workspace.settings.interceptors})
