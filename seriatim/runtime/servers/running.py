"""The MCP servers of one run: started side by side, called, and stopped for certain."""

import logging
import math
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, assert_never, final

import anyio
from mcp_types import ServerCapabilities

from interceptors import (
    NOBODY,
    Completed,
    Dialogue,
    Failed,
    JsonObject,
    Progress,
    Redactor,
    ServerUnavailableError,
    ToolRef,
    printable,
)
from seriatim.runtime.servers.connection import Awaited, Connected, Connection, Unavailable
from seriatim.runtime.servers.endpoint import Endpoint
from seriatim.runtime.servers.expansion import Expanded, MissingVariableError, expand
from seriatim.runtime.servers.link import Link
from seriatim.runtime.servers.listing import NO_TOOLS
from seriatim.runtime.servers.news import ServersAwaited, Watch, no_watch
from seriatim.runtime.servers.process import ServerProcess
from seriatim.runtime.servers.server_log import ServerLog, log_path
from seriatim.runtime.servers.session import ListedTool
from seriatim.topology.models import HttpTransport, ServerDefinition, StdioTransport
from telemetry.context import no_trace_of_its_own

START_LIMIT: Final = 30.0
"""Seconds in which a server has to answer with its tools."""
NOTICE: Final = 3.0
"""Seconds of waiting for servers after which it is said for whom; most have answered by then."""

_SDK_LOGGERS: Final = ("mcp", "client")


@final
class RunningServers:
    """Satisfies `interceptors.Servers` and `interceptors.Annotations` with real MCP servers.

    Attributes:
        secrets: every value that came in through `${VAR}`.
    """

    def __init__(self, connections: Mapping[str, Connection], secrets: frozenset[str]) -> None:
        self._connections: Final = connections
        self.secrets: Final = secrets

    async def call(
        self,
        tool: ToolRef,
        arguments: JsonObject,
        meta: JsonObject,
        progress: Progress,
        dialogue: Dialogue = NOBODY,
    ) -> Completed | Failed:
        connection = self._connection(tool.server)
        return await connection.call(tool.name, arguments, meta, progress, dialogue)

    async def reads_only(self, tool: ToolRef) -> bool:
        connection = self._connection(tool.server)
        if not connection.listing.edition:
            await connection.available()
        listed = connection.listing.tools.get(tool.name)
        return bool(listed and listed.annotations and listed.annotations.read_only_hint)

    @property
    def edition(self) -> int:
        """Grows whenever a server lists something else."""
        return sum(connection.listing.edition for connection in self._connections.values())

    def tools(self, server: str) -> Mapping[str, ListedTool]:
        """Return a server's tools by name, as it listed them last; none if it never has."""
        if server not in self._connections:
            return NO_TOOLS
        return self._connections[server].listing.tools

    def capabilities(self, server: str) -> ServerCapabilities:
        """Return what a server declares that it can do; nothing for one that is not available."""
        match self._connection(server).state:
            case Connected(session=session):
                return session.server_capabilities or ServerCapabilities()
            case Awaited() | Unavailable():
                return ServerCapabilities()
            case state:
                assert_never(state)

    async def read(
        self, server: str, method: str, params: JsonObject, capabilities: JsonObject
    ) -> dict[str, Any]:
        """Send a server a request that only reads; see `Connection.read`."""
        return await self._connection(server).read(method, params, capabilities)

    def problems(self) -> Mapping[str, str]:
        """Return, for each server that is not available, why, as a clause."""
        return {
            server: connection.state.detail
            for server, connection in self._connections.items()
            if not isinstance(connection.state, Connected)
        }

    def _connection(self, server: str) -> Connection:
        if server not in self._connections:
            raise ServerUnavailableError(server, "it is none of the servers of this run")
        return self._connections[server]


def secrets_of(
    definitions: Iterable[ServerDefinition], environ: Mapping[str, str]
) -> frozenset[str]:
    """Return every value that comes in through `${VAR}` when the servers are opened."""
    return _secrets(_expansion(definition, environ) for definition in definitions)


@asynccontextmanager
async def open_servers(
    definitions: Iterable[ServerDefinition],
    environ: Mapping[str, str],
    directory: Path,
    *,
    start_limit: float = START_LIMIT,
    patience: float = math.inf,
    interactive: bool = False,
    pin: bool = False,
    watch: Watch = no_watch,
) -> AsyncIterator[RunningServers]:
    """Start servers, keep them running, and stop them on leaving, however that comes about.

    A server that does not start, or ends, is no error here: calls to it fail, `problems` says why,
    and it is started again in the background. The servers outlive a cancellation for as long as the
    body does, so that what it still has under way can come to its end.

    Args:
        environ: where `${VAR}` and the few variables that every process gets come from.
        directory: the workspace's directory; logs go to `.seriatim/servers/` in it.
        start_limit: seconds in which each server has to answer with its tools.
        patience: seconds after which the body begins although servers have not answered yet.
        interactive: whether those who make calls may be able to answer what servers ask.
        pin: refuse calls of tools whose definition is not what it was at first.
        watch: told what becomes of the servers; raises nothing.
    """
    defined = {definition.id: definition for definition in definitions}
    expansions = {server: _expansion(each, environ) for server, each in defined.items()}
    secrets = _secrets(expansions.values())
    redactor = Redactor(secrets)

    def show(text: str) -> str:
        return printable(redactor.text(text))

    connections = {
        server: Connection(
            server,
            partial(_link, defined[server], expansion, environ, directory),
            start_limit,
            show,
            interactive=interactive,
            pin=pin,
            watch=watch,
        )
        for server, expansion in expansions.items()
    }
    raised: list[Exception] = []
    with _quiet_sdk():
        async with anyio.create_task_group() as tasks:
            # The SDK's spans of a greeting would each be a trace beside the run's.
            with no_trace_of_its_own():
                for connection in connections.values():
                    tasks.start_soon(connection.run)
            try:
                await _first_answers(connections, patience, watch)
                yield RunningServers(connections, secrets)
            except Exception as error:  # noqa: BLE001  raised below: a task group would wrap it
                raised.append(error)
            finally:
                for connection in connections.values():
                    connection.stop()
    for each in raised:
        raise each


async def _first_answers(
    connections: Mapping[str, Connection], patience: float, watch: Watch
) -> None:
    """Wait until every server has answered, or has failed to, and say who is waited for."""

    async def all_settled() -> None:
        for connection in connections.values():
            await connection.settled.wait()

    with anyio.move_on_after(patience):
        with anyio.move_on_after(NOTICE):
            await all_settled()
            return
        awaited = (server for server, each in connections.items() if not each.settled.is_set())
        await watch(ServersAwaited(tuple(awaited)))
        await all_settled()


def _link(
    definition: ServerDefinition,
    expansion: Expanded | MissingVariableError,
    environ: Mapping[str, str],
    directory: Path,
) -> Link:
    if isinstance(expansion, MissingVariableError):
        raise expansion
    match definition.transport, expansion.transport:
        case StdioTransport() as written, StdioTransport() as transport:
            log = ServerLog(log_path(directory, definition.id), expansion.secrets)
            return ServerProcess(transport, written, environ, directory, log)
        case _, HttpTransport() as transport:
            return Endpoint(transport)
        case _:
            raise TypeError("an expansion keeps the kind of its transport")


def _secrets(expansions: Iterable[Expanded | MissingVariableError]) -> frozenset[str]:
    sound = (each.secrets for each in expansions if isinstance(each, Expanded))
    return frozenset[str]().union(*sound)


def _expansion(
    definition: ServerDefinition, environ: Mapping[str, str]
) -> Expanded | MissingVariableError:
    try:
        return expand(definition, environ)
    except MissingVariableError as error:
        return error


@contextmanager
def _quiet_sdk() -> Iterator[None]:
    """Keep what the SDK logs off the terminal, unless somebody has set logging up."""
    handler = logging.NullHandler()
    loggers = [logging.getLogger(name) for name in _SDK_LOGGERS]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
