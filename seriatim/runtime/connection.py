"""One MCP server for the time of a run: reached, asked for its tools, called, and let go."""

import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, assert_never, final

import anyio
from mcp import ClientSession, MCPError
from mcp_types import UNSUPPORTED_PROTOCOL_VERSION
from pydantic import ValidationError

from interceptors import (
    Completed,
    Dialogue,
    Failed,
    JsonObject,
    Progress,
    ServerProtocolError,
    ServerUnavailableError,
)
from seriatim.runtime.asking import AskingDispatcher
from seriatim.runtime.expansion import MissingVariableError
from seriatim.runtime.link import Link
from seriatim.runtime.session import ListedTool, RelaySession, list_tools
from seriatim.runtime.wire import send_call, send_request, was_lost

PROBE_SHARE: Final = 1 / 3
"""Part of the time for the start in which a server may answer to the newest protocol."""

Greeting: TypeAlias = Callable[[ClientSession], Awaitable[None]]
"""Agrees on a protocol version with a server."""


@final
@dataclass(frozen=True, slots=True)
class Connected:
    """The server answers."""

    link: Link
    session: RelaySession
    tools: Mapping[str, ListedTool]


@final
@dataclass(frozen=True, slots=True)
class Unavailable:
    """The server does not answer.

    Attributes:
        detail: why, as a clause.
    """

    detail: str


class Connection:
    """Reaches one server and keeps it for as long as `run` runs.

    Args:
        server: its id.
        new_link: makes the way to it, once for each attempt; may raise `MissingVariableError`.
        limit: seconds in which it has to answer with its tools.
        show: makes what a server or a library said fit to be shown.
        interactive: whether those who make calls may be able to answer questions.
    """

    def __init__(
        self,
        server: str,
        new_link: Callable[[], Link],
        limit: float,
        show: Callable[[str], str],
        *,
        interactive: bool,
    ) -> None:
        self.server: Final = server
        self._new_link: Final = new_link
        self._limit: Final = limit
        self._show: Final = show
        self._interactive: Final = interactive
        self._stay: Final = anyio.CancelScope()
        self.state: Connected | Unavailable = Unavailable("it was not started")
        self.settled: Final = anyio.Event()
        """Set when the server answers, or will not."""

    async def run(self) -> None:
        """Own the connection from its start to its end; raises nothing but cancellation."""
        try:
            deadline = anyio.current_time() + self._limit
            # A server may die of a question that it does not know: it is started once more and
            # asked nothing but the old question.
            for greeting in (self._greet_either_era, _greet_handshake_era):
                link = self._new_link()
                self.state = Unavailable(await self._keep(link, greeting, deadline))
                if self.settled.is_set() or not link.fate:
                    break
        except MissingVariableError as error:
            self.state = Unavailable(error.detail)
        finally:
            self.settled.set()

    def stop(self) -> None:
        """Make `run` let go of the server and end."""
        self._stay.cancel()

    async def call(
        self,
        tool: str,
        arguments: JsonObject,
        meta: JsonObject,
        progress: Progress,
        dialogue: Dialogue,
    ) -> Completed | Failed:
        """Call a tool; see `interceptors.Servers`."""
        connected = self._connected()
        with self._explained(connected):
            return await send_call(connected.session, tool, arguments, meta, progress, dialogue)

    async def request(
        self, method: str, params: JsonObject, capabilities: JsonObject
    ) -> dict[str, Any]:
        """Send any request and return its result; see `wire.send_request`.

        Raises:
            ServerUnavailableError: when no answer can be had from the server.
            ServerProtocolError: when the answer is a JSON-RPC error.
        """
        connected = self._connected()
        with self._explained(connected):
            return await send_request(connected.session, method, params, capabilities)

    def _connected(self) -> Connected:
        match self.state:
            case Unavailable(detail):
                raise ServerUnavailableError(self.server, detail)
            case Connected() as connected:
                return connected
            case _:
                assert_never(self.state)

    @contextmanager
    def _explained(self, connected: Connected) -> Iterator[None]:
        """Turn the SDK's error into what it says of the server."""
        try:
            yield
        except MCPError as error:
            if was_lost(error):
                reason = self._reason(connected.link, error.message)
                raise ServerUnavailableError(self.server, reason) from error
            data = () if error.data is None else (error.data,)
            raise ServerProtocolError(error.code, error.message, data) from error

    async def _keep(self, link: Link, greet: Greeting, deadline: float) -> str:
        """Reach the server, stay until it ends or `stop` is called, and return why it is over."""
        problem = "it was stopped"
        with anyio.CancelScope(deadline=deadline) as patience:
            try:
                async with (
                    link.streams() as (incoming, outgoing),
                    RelaySession(
                        AskingDispatcher(incoming, outgoing, interactive=self._interactive)
                    ) as session,
                ):
                    await greet(session)
                    self.state = Connected(link, session, await list_tools(session))
                    patience.deadline = math.inf
                    self.settled.set()
                    with self._stay:
                        await link.ended()
                    self.state = Unavailable(self._reason(link, problem))
            except Exception as error:  # noqa: BLE001  one bad server harms no other
                problem = _clause(error)
        if patience.cancelled_caught:
            problem = f"did not answer within {self._limit:g} seconds"
        return self._reason(link, problem)

    async def _greet_either_era(self, session: ClientSession) -> None:
        # The SDK's own negotiation waits for 10 seconds for an answer to the new question, which
        # is all the time that a server has; some servers never answer what they do not know.
        with anyio.move_on_after(self._limit * PROBE_SHARE):
            try:
                await session.discover()
            except (MCPError, RuntimeError, ValidationError):
                pass
            else:
                return
        try:
            await session.initialize()
        except MCPError as error:
            if error.code != UNSUPPORTED_PROTOCOL_VERSION:
                raise
            # It knows the new protocol, and was only slow to start.
            await session.discover()

    def _reason(self, link: Link, problem: str) -> str:
        said = link.evidence
        reason = link.fate or problem
        return self._show(f"{reason}: {said}" if said else reason)


async def _greet_handshake_era(session: ClientSession) -> None:
    await session.initialize()


def _clause(error: BaseException) -> str:
    """Return what went wrong at the start of a server."""
    match error:
        case BaseExceptionGroup(exceptions=(first, *_)):
            return _clause(first)
        case MCPError():
            return error.message if was_lost(error) else f"{error.message} (code {error.code})"
        case ValidationError():
            return f"sent what is no valid MCP ({error.title}: {error.errors()[0]['msg']})"
        case OSError(strerror=str(), filename=str()):
            return f"cannot be started: {error.strerror}: `{error.filename}`"
        case _:
            return f"{type(error).__name__}: {error}"
