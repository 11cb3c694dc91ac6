"""The MCP servers of one run: started side by side, called, and stopped for certain."""

import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
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
from seriatim.runtime.connection import Connected, Connection, Unavailable
from seriatim.runtime.endpoint import Endpoint
from seriatim.runtime.expansion import Expanded, MissingVariableError, expand
from seriatim.runtime.link import Link
from seriatim.runtime.process import ServerProcess
from seriatim.runtime.server_log import ServerLog, log_path
from seriatim.runtime.session import ListedTool
from seriatim.topology.models import HttpTransport, ServerDefinition, StdioTransport
from telemetry.context import no_trace_of_its_own

START_LIMIT: Final = 30.0
"""Seconds in which a server has to answer with its tools."""
STOP_LIMIT: Final = 10.0
"""Seconds after which a connection that does not close is broken off; processes need fewer."""

_SDK_LOGGERS: Final = ("mcp", "client")
_NO_TOOLS: Final[Mapping[str, ListedTool]] = MappingProxyType({})


@final
class RunningServers:
    """Satisfies `interceptors.Servers` with real MCP servers.

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
        if tool.server not in self._connections:
            raise ServerUnavailableError(tool.server, "it is none of the servers of this run")
        connection = self._connections[tool.server]
        return await connection.call(tool.name, arguments, meta, progress, dialogue)

    def tools(self, server: str) -> Mapping[str, ListedTool]:
        """Return a server's tools by name, as it listed them at its start; none if unavailable."""
        if server not in self._connections:
            return _NO_TOOLS
        match self._connections[server].state:
            case Connected(tools=tools):
                return tools
            case Unavailable():
                return _NO_TOOLS
            case state:
                assert_never(state)

    def capabilities(self, server: str) -> ServerCapabilities:
        """Return what a server declares that it can do; nothing for one that is not available."""
        match self._connections[server].state:
            case Connected(session=session):
                return session.server_capabilities or ServerCapabilities()
            case Unavailable():
                return ServerCapabilities()
            case state:
                assert_never(state)

    async def request(
        self, server: str, method: str, params: JsonObject, capabilities: JsonObject
    ) -> dict[str, Any]:
        """Send any request to a server; see `Connection.request`."""
        return await self._connections[server].request(method, params, capabilities)

    def problems(self) -> Mapping[str, str]:
        """Return, for each server that is not available, why, as a clause."""
        return {
            server: connection.state.detail
            for server, connection in self._connections.items()
            if isinstance(connection.state, Unavailable)
        }


@asynccontextmanager
async def open_servers(
    definitions: Iterable[ServerDefinition],
    environ: Mapping[str, str],
    directory: Path,
    *,
    start_limit: float = START_LIMIT,
    interactive: bool = False,
) -> AsyncIterator[RunningServers]:
    """Start servers, and stop them on leaving, however that comes about.

    A server that does not start is no error here: calls to it fail, and `problems` says why.

    Args:
        environ: where `${VAR}` and the few variables that every process gets come from.
        directory: the workspace's directory; logs go to `.seriatim/servers/` in it.
        start_limit: seconds in which each server has to answer with its tools.
        interactive: whether those who make calls may be able to answer what servers ask.
    """
    connections, secrets = _connections(
        definitions, environ, directory, start_limit, interactive=interactive
    )
    raised: list[Exception] = []
    with _quiet_sdk():
        async with anyio.create_task_group() as tasks:
            # The SDK's spans of a greeting would each be a trace beside the run's.
            with no_trace_of_its_own():
                for connection in connections.values():
                    tasks.start_soon(connection.run)
            try:
                for connection in connections.values():
                    await connection.settled.wait()
                yield RunningServers(connections, secrets)
            except Exception as error:  # noqa: BLE001  raised below: a task group would wrap it
                raised.append(error)
            finally:
                for connection in connections.values():
                    connection.stop()
                tasks.cancel_scope.deadline = anyio.current_time() + STOP_LIMIT
    for each in raised:
        raise each


def _connections(
    definitions: Iterable[ServerDefinition],
    environ: Mapping[str, str],
    directory: Path,
    start_limit: float,
    *,
    interactive: bool,
) -> tuple[Mapping[str, Connection], frozenset[str]]:
    """Prepare a connection to each server; also return the secrets of all of them."""
    expansions = {definition.id: _expansion(definition, environ) for definition in definitions}
    secrets = frozenset(
        secret
        for expansion in expansions.values()
        if isinstance(expansion, Expanded)
        for secret in expansion.secrets
    )
    redactor = Redactor(secrets)

    def show(text: str) -> str:
        return printable(redactor.text(text))

    def new_link(server: str) -> Link:
        expansion = expansions[server]
        if isinstance(expansion, MissingVariableError):
            raise expansion
        match expansion.transport:
            case StdioTransport() as transport:
                log = ServerLog(log_path(directory, server), expansion.secrets)
                return ServerProcess(transport, environ, directory, log)
            case HttpTransport() as transport:
                return Endpoint(transport)
            case _:
                assert_never(expansion.transport)

    connections = {
        server: Connection(
            server, partial(new_link, server), start_limit, show, interactive=interactive
        )
        for server in expansions
    }
    return connections, secrets


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
