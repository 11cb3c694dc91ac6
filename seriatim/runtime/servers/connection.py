"""One MCP server for the time of a run: reached, called, and reached again when it is lost."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, assert_never, final

import anyio
from mcp import MCPError
from pydantic import ValidationError

from interceptors import (
    Completed,
    Dialogue,
    Failed,
    JsonObject,
    Progress,
    ServerProtocolError,
    ServerUnavailableError,
    ToolChangedError,
)
from seriatim.runtime.servers.asking import AskingDispatcher
from seriatim.runtime.servers.expansion import MissingVariableError
from seriatim.runtime.servers.greeting import Greeting, greet_either_era, greet_handshake_era
from seriatim.runtime.servers.link import Link, NotStartedError
from seriatim.runtime.servers.listing import Listing
from seriatim.runtime.servers.news import ServerBack, ServerLost, ToolsListed, Watch
from seriatim.runtime.servers.pauses import Pauses
from seriatim.runtime.servers.session import RelaySession, list_tools
from seriatim.runtime.servers.suspicion import Suspicion
from seriatim.runtime.servers.wire import send_call, send_read, was_lost

PATIENCE: Final = 8.0
"""Seconds that a call waits for a server which is being started: most take less, and an agent that
would wait for longer is better told why. A policy that waits for it too may take 10."""
STOP_LIMIT: Final = 10.0
"""Seconds after which a connection that does not close is broken off; processes need fewer."""
RELIST: Final = 1.0
"""Seconds between two listings of a server's tools at least, however often it says that they
changed."""


@final
@dataclass(frozen=True, slots=True)
class Connected:
    """The server answers."""

    link: Link
    session: RelaySession


@final
@dataclass(frozen=True, slots=True)
class Awaited:
    """The server is being started, or started again after it was well: it should answer soon.

    Attributes:
        detail: what is known meanwhile, as a clause.
    """

    detail: str


@final
@dataclass(frozen=True, slots=True)
class Unavailable:
    """The server does not answer.

    Attributes:
        detail: why, as a clause.
    """

    detail: str


State: TypeAlias = Connected | Awaited | Unavailable


class Connection:
    """Reaches one server, and reaches it again whenever it is lost, for as long as `run` runs.

    Args:
        server: its id.
        new_link: makes the way to it, once for each attempt; may raise `MissingVariableError`.
        limit: seconds in which it has to answer with its tools.
        show: makes what a server or a library said fit to be shown.
        interactive: whether those who make calls may be able to answer questions.
        pin: refuse calls of tools whose definition is not what it was at first.
        watch: told when the server is lost, is back, or lists other tools; raises nothing.
    """

    def __init__(
        self,
        server: str,
        new_link: Callable[[], Link],
        limit: float,
        show: Callable[[str], str],
        *,
        interactive: bool,
        pin: bool,
        watch: Watch,
    ) -> None:
        self.server: Final = server
        self.listing: Final = Listing()
        self.state: State = Awaited("it has not answered yet")
        self.settled: Final = anyio.Event()
        """Set when the server has answered for the first time, or has failed to."""
        self._new_link: Final = new_link
        self._limit: Final = limit
        self._show: Final = show
        self._interactive: Final = interactive
        self._pin: Final = pin
        self._watch: Final = watch
        self._greetings: tuple[Greeting, ...] = (greet_either_era, greet_handshake_era)
        self._is_reported_lost = False
        self._is_stopping = False
        self._turned = anyio.Event()
        self._suspicion = Suspicion()
        self._pending = anyio.CancelScope()
        # Shielded: what is still under way for whoever is cancelled may need the server.
        self._life: Final = anyio.CancelScope(shield=True)

    async def run(self) -> None:
        """Own the connection until `stop`."""
        pauses = Pauses()
        with self._life:
            try:
                while not self._is_stopping:
                    pause = pauses.after(await self._attempt())
                    if pause > PATIENCE and isinstance(self.state, Awaited):
                        self._turn(Unavailable(self.state.detail))
                    self.settled.set()
                    with self._until_stopped():
                        await anyio.sleep(pause)
                self._turn(Unavailable("it was stopped"))
            except MissingVariableError as error:
                await self._lose(Unavailable(error.detail), retried=False)
            finally:
                self.settled.set()

    def stop(self) -> None:
        """Make `run` let go of the server and end."""
        self._is_stopping = True
        self._pending.cancel()
        self._life.deadline = anyio.current_time() + STOP_LIMIT

    async def call(
        self,
        tool: str,
        arguments: JsonObject,
        meta: JsonObject,
        progress: Progress,
        dialogue: Dialogue,
    ) -> Completed | Failed:
        """Call a tool; see `interceptors.Servers`. Waits for a server that should answer soon."""
        connected = await self.available()
        if self._pin:
            await self._check_pin(tool)
        with self._explained(connected):
            return await send_call(connected.session, tool, arguments, meta, progress, dialogue)

    async def read(
        self, method: str, params: JsonObject, capabilities: JsonObject
    ) -> dict[str, Any]:
        """Send a request that only reads and return its result; see `wire.READS`.

        Raises:
            ServerUnavailableError: when no answer can be had from the server.
            ServerProtocolError: when the answer is a JSON-RPC error.
        """
        connected = await self.available()
        with self._explained(connected):
            return await send_read(connected.session, method, params, capabilities)

    async def available(self) -> Connected:
        """Return the connection, once there is one.

        Raises:
            ServerUnavailableError: when there is none, and will not be soon.
        """
        if self._is_awaited():
            with anyio.move_on_after(PATIENCE):
                while self._is_awaited():
                    await self._turned.wait()
        match self.state:
            case Connected() as connected:
                return connected
            case Awaited(detail) | Unavailable(detail):
                raise ServerUnavailableError(self.server, detail)
            case _:
                assert_never(self.state)

    def _is_awaited(self) -> bool:
        match self.state:
            case Connected(link):
                return bool(link.fate)  # it has just ended, and is about to be started again
            case Awaited():
                return True
            case Unavailable():
                return False
            case _:
                assert_never(self.state)

    async def _check_pin(self, tool: str) -> None:
        """Raise when a tool is not, or cannot be known to be, what it was at first."""
        with anyio.move_on_after(PATIENCE) as waiting:
            await self._suspicion.settled()
        if waiting.cancelled_caught:
            detail = "its tools may have changed, and it does not list them"
            raise ServerUnavailableError(self.server, detail)
        if self.listing.differs(tool):
            raise ToolChangedError(self.server, tool)

    async def _attempt(self) -> float:
        """Start the server and stay with it; return the seconds for which it answered."""
        deadline = anyio.current_time() + self._limit
        problem = ""
        # A server may die of a question that it does not know: it is started once more and asked
        # nothing but the old question.
        for greet in self._greetings:
            link = self._new_link()
            ended = await self._keep(link, greet, deadline)
            if ended.answered:
                # It is known from here on, and greeted in one way.
                self._greetings = (greet,)
                if isinstance(self.state, Connected) and not self._is_stopping:
                    await self._lose(Awaited(ended.reason))
                return ended.answered
            problem = ended.reason
            if not (link.fate and link.heard):
                break
        if not self._is_stopping:
            await self._lose(Unavailable(problem))
        return 0.0

    @contextmanager
    def _explained(self, connected: Connected) -> Iterator[None]:
        """Turn the SDK's error into what it says of the server."""
        try:
            yield
        except MCPError as error:
            if was_lost(error):
                self._suspicion.arise()
                reason = self._reason(connected.link, error.message)
                raise ServerUnavailableError(self.server, reason) from error
            data = () if error.data is None else (error.data,)
            raise ServerProtocolError(error.code, error.message, data) from error

    async def _keep(self, link: Link, greet: Greeting, deadline: float) -> "_Ended":
        """Reach the server, and stay until it ends or `stop` is called."""
        problem = "it was stopped"
        since = math.inf
        with self._until_stopped(deadline) as patience:
            try:
                async with (
                    link.streams() as (incoming, outgoing),
                    RelaySession(
                        AskingDispatcher(incoming, outgoing, interactive=self._interactive),
                        self._suspicion.hear,
                    ) as session,
                ):
                    await greet(session, self._limit)
                    await self._list(session)
                    since = anyio.current_time()
                    patience.deadline = math.inf
                    await self._find(Connected(link, session))
                    await self._stay(link, session)
                    if not self._is_stopping:
                        await self._lose(Awaited(self._reason(link, "it is gone")))
                    patience.deadline = anyio.current_time() + STOP_LIMIT
            except Exception as error:  # noqa: BLE001  one bad server harms no other
                problem = _clause(error)
        if patience.cancelled_caught and not self._is_stopping:
            problem = f"did not answer within {self._limit:g} seconds"
        answered = max(0.0, anyio.current_time() - since)
        return _Ended(self._reason(link, problem), answered)

    async def _stay(self, link: Link, session: RelaySession) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._suspicion.subscribe, session)
            tasks.start_soon(self._follow, link, session)
            with self._until_stopped():
                await link.ended()
            tasks.cancel_scope.cancel()

    async def _follow(self, link: Link, session: RelaySession) -> None:
        """Ask for the tools again whenever they, or the server itself, are in doubt."""
        pauses = Pauses()
        while True:
            await self._suspicion.arisen()
            try:
                with anyio.fail_after(self._limit):
                    await self._list(session)
            except (MCPError, ValidationError, TimeoutError) as error:
                if link.fate:
                    return  # whoever waits for its end knows better
                if isinstance(error, MCPError) and was_lost(error):
                    await self._lose(Unavailable(self._reason(link, error.message)))
                await anyio.sleep(pauses.after(0))
                self._suspicion.arise()
                continue
            pauses = Pauses()
            await self._find(Connected(link, session))
            await anyio.sleep(RELIST)

    async def _list(self, session: RelaySession) -> None:
        edition = self.listing.edition
        changes = self.listing.update(await list_tools(session))
        self._suspicion.settle()
        if self.listing.edition != edition:
            await self._watch(ToolsListed(self.server, changes))

    async def _find(self, state: Connected) -> None:
        self._turn(state)
        self.settled.set()
        if self._is_reported_lost:
            self._is_reported_lost = False
            await self._watch(ServerBack(self.server))

    async def _lose(self, state: Awaited | Unavailable, *, retried: bool = True) -> None:
        self._turn(state)
        if not self._is_reported_lost:
            self._is_reported_lost = True
            await self._watch(ServerLost(self.server, state.detail, retried))

    def _turn(self, state: State) -> None:
        self.state = state
        turned, self._turned = self._turned, anyio.Event()
        turned.set()

    @contextmanager
    def _until_stopped(self, deadline: float = math.inf) -> Iterator[anyio.CancelScope]:
        """Let `stop` cut what is waited for within."""
        with anyio.CancelScope(deadline=deadline) as scope:
            self._pending = scope
            if self._is_stopping:
                scope.cancel()
            yield scope

    def _reason(self, link: Link, problem: str) -> str:
        said = link.evidence
        reason = link.fate or problem
        return self._show(f"{reason}: {said}" if said else reason)


@final
@dataclass(frozen=True, slots=True)
class _Ended:
    """What became of an attempt to reach a server.

    Attributes:
        reason: why it is over, as a clause.
        answered: seconds for which the server answered; 0 for one that never did.
    """

    reason: str
    answered: float


def _clause(error: BaseException) -> str:
    """Return what went wrong at the start of a server."""
    match error:
        case BaseExceptionGroup(exceptions=(first, *_)):
            return _clause(first)
        case MCPError():
            return error.message if was_lost(error) else f"{error.message} (code {error.code})"
        case ValidationError():
            return f"sent what is no valid MCP ({error.title}: {error.errors()[0]['msg']})"
        case NotStartedError():
            return str(error)
        case _:
            return f"{type(error).__name__}: {error}"
