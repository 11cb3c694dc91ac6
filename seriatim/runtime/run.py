"""A run: one execution of a topology, and all that its agents share."""

import re
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, final

import anyio

from interceptors import (
    AgentId,
    AuditSink,
    Interceptor,
    Ledger,
    MemoryLedger,
    Redactor,
    RunId,
    TraceIds,
    no_trace,
)
from seriatim.runtime.dispatch import Allowance
from seriatim.runtime.servers import RunningServers, open_servers
from seriatim.topology.models import Topology, Workspace

RUN_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
"""The shape of a run id that somebody gives (DESIGN.md, section 7)."""


@final
@dataclass(frozen=True, slots=True)
class Observers:
    """What watches the calls of a run from outside; empty while telemetry is off.

    Attributes:
        interceptors: stand outermost, the first outside the second.
        current_trace: returns the ids of the span under which a call is recorded.

    """

    interceptors: tuple[Interceptor, ...] = ()
    current_trace: Callable[[], tuple[TraceIds, ...]] = no_trace


@final
@dataclass(frozen=True, slots=True)
class Run:
    """What the agents of one run share."""

    id: RunId
    workspace: Workspace
    topology: Topology
    servers: RunningServers
    ledger: Ledger
    audit: AuditSink
    redactor: Redactor
    allowance: Allowance
    observers: Observers


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
) -> AsyncIterator[Run]:
    """Start the servers that `agents` need, and stop them when the run ends.

    Args:
        max_calls: calls that the run may make; `NO_LIMIT` for any number.
        environ: where `${VAR}` of the server definitions comes from.

    Raises:
        MissingVariableError: when the definition of a needed server names a variable that is not
            in `environ`.

    """
    needed = {skill.tool.server for agent in agents for skill in topology.agents[agent].skills}
    definitions = [server for server in workspace.servers.values() if server.id in needed]
    ledger = MemoryLedger()
    async with open_servers(definitions, environ, workspace.directory) as servers:
        try:
            yield Run(
                id=run,
                workspace=workspace,
                topology=topology,
                servers=servers,
                ledger=ledger,
                audit=audit,
                redactor=Redactor(servers.secrets, workspace.settings.redact),
                allowance=Allowance(max_calls),
                observers=observers,
            )
        finally:
            with anyio.CancelScope(shield=True):
                await ledger.forget(run)
