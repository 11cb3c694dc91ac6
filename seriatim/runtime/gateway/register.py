"""The register: who may speak to the gateway over HTTP, in whose name, and for how long."""

import hashlib
import hmac
import logging
import math
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, TypeAlias, final

import anyio
from anyio.abc import TaskGroup

from interceptors import AgentId, RunId, Scope
from seriatim.runtime.dispatch import Allowance
from seriatim.runtime.gateway.background import background
from seriatim.runtime.gateway.door import Door
from seriatim.runtime.gateway.registrations import Registration, registration
from seriatim.runtime.run import Run

TOKEN_BYTES: Final = 32
"""Random bytes of a token: 256 bits."""
REMEMBERED: Final = 1000
"""Tokens of the past whose holders are still told what became of them."""
SWEEP: Final = 5.0
"""Seconds between two looks for registrations that have expired; requests are judged at once."""
FOREVER: Final = math.inf
"""When a registration expires that lives as long as the gateway."""
LEDGER_SECONDS: Final = 10.0
"""How long the ledger may take to forget."""

Clock: TypeAlias = Callable[[], float]
"""Tells the time, in seconds since 1970."""

_log: Final = logging.getLogger(__name__)


class Obstacle(Enum):
    """Why an agent cannot be registered, as a sentence."""

    UNKNOWN_AGENT = "the topology has no such agent"
    TAKEN = "the agent is registered in this run already; end that registration first"
    FULL = "there are as many registrations as there may be; end some of them first"


class RegistrationError(Exception):
    """An agent cannot be registered.

    Attributes:
        obstacle: why.
    """

    def __init__(self, obstacle: Obstacle) -> None:
        super().__init__(obstacle.value)
        self.obstacle: Final = obstacle


class Entry:
    """One registration in the register.

    Attributes:
        expires: when it ends by itself, in seconds since 1970; may be put off.
        ended: set when it is to end.
        closed: set when nothing of it is left.
    """

    def __init__(self, door: Door, digests: tuple[bytes, ...], expires: float) -> None:
        self.door: Final = door
        self.digests: Final = digests
        self.expires = expires
        self.ended: Final = anyio.Event()
        self.closed: Final = anyio.Event()

    @property
    def registration(self) -> Registration:
        """The registration itself."""
        return self.door.registration

    @property
    def scope(self) -> Scope:
        """Its run and agent."""
        return self.registration.agent.scope


@final
@dataclass(frozen=True, slots=True)
class Past:
    """A token that was right once.

    Attributes:
        fate: what became of it, as a sentence.
    """

    fate: str


@final
@dataclass(frozen=True, slots=True)
class Unknown:
    """A token that was never given out, or so long ago that it is forgotten."""


EXPIRED: Final = Past("the token has expired; ask for a new one")
ENDED: Final = Past("the registration of this token has been ended")

Found: TypeAlias = Entry | Past | Unknown
"""What the register has under a token."""


class Register:
    """The registrations of a gateway: one for each agent of each run.

    Keeps no token, only what tells a right one from a wrong one: nothing here can leak one into a
    log, a trace or a memory dump.

    Args:
        run: the run that is there from the start; others share its servers, ledger and audit log.
        tasks: where the registrations live.
    """

    def __init__(self, run: Run, tasks: TaskGroup, now: Clock) -> None:
        self._first: Final = run
        self._limits: Final = run.workspace.settings.gateway
        self._tasks: Final = tasks
        self._now: Final = now
        self._runs: Final[dict[RunId, Run]] = {run.id: run}
        self._agents: Final[Counter[RunId]] = Counter()
        self._by_digest: Final[dict[bytes, Entry]] = {}
        self._by_id: Final[dict[str, Entry]] = {}
        # Holds those too that have ended and are not closed yet.
        self._by_scope: Final[dict[Scope, Entry]] = {}
        self._past: Final[dict[bytes, Past]] = {}

    @property
    def run(self) -> RunId:
        """The run of whoever names none."""
        return self._first.id

    def entries(self) -> tuple[Entry, ...]:
        """Return the registrations that have not ended, the oldest first."""
        self.sweep()
        return tuple(self._by_id.values())

    async def issue(self, run: RunId, agent: AgentId, lifetime: float) -> tuple[Entry, str]:
        """Register an agent; return its token too, which nobody can ask for a second time.

        Args:
            lifetime: seconds until the registration expires, or `FOREVER`.

        Raises:
            RegistrationError: when it cannot be registered.
            InterceptorError: when a user's interceptor cannot be had.
        """
        token = secrets.token_urlsafe(TOKEN_BYTES)
        expires = self._now() + lifetime
        return await self._open(Scope(run, agent), (_digest(token),), expires), token

    async def claim(self, run: RunId, agent: AgentId, expires: float) -> Entry:
        """Return the registration of whoever proves by other means to be that agent.

        It lives until the last of its proofs expires.

        Raises:
            RegistrationError: when it cannot be registered; an agent with a token of its own is
                taken.
            InterceptorError: when a user's interceptor cannot be had.
        """
        entry = self._living(Scope(run, agent))
        if entry is None:
            return await self._open(Scope(run, agent), (), expires)
        if entry.digests:
            raise RegistrationError(Obstacle.TAKEN)
        entry.expires = max(entry.expires, expires)
        return entry

    def find(self, token: str) -> Found:
        """Return whose token this is, or what became of it."""
        digest = _digest(token)
        entry = self._by_digest.get(digest)
        if entry is None or not any(hmac.compare_digest(digest, own) for own in entry.digests):
            return self._past.get(digest, Unknown())
        if entry.expires <= self._now():
            self._end(entry, EXPIRED)
            return EXPIRED
        return entry

    async def end(self, id_: str) -> bool:
        """End a registration and all that is in flight of it; return whether there was one."""
        self.sweep()
        if (entry := self._by_id.get(id_)) is None:
            return False
        self._end(entry, ENDED)
        await entry.closed.wait()
        return True

    def sweep(self) -> None:
        """End the registrations that have expired."""
        now = self._now()
        for entry in tuple(self._by_id.values()):
            if entry.expires <= now:
                self._end(entry, EXPIRED)

    def close(self) -> None:
        """End all registrations."""
        for entry in self._by_scope.values():
            entry.ended.set()

    async def _open(self, scope: Scope, digests: tuple[bytes, ...], expires: float) -> Entry:
        if scope.agent not in self._first.topology.agents:
            raise RegistrationError(Obstacle.UNKNOWN_AGENT)
        # The next of a name begins when nothing is left of the one before.
        while former := self._by_scope.get(scope):
            if self._living(scope):
                raise RegistrationError(Obstacle.TAKEN)
            await former.closed.wait()
        if len(self._by_id) >= self._limits.registrations:
            self.sweep()
        if len(self._by_id) >= self._limits.registrations:
            raise RegistrationError(Obstacle.FULL)
        run = self._runs.get(scope.run) or _joined(self._first, scope.run)
        entry = Entry(Door(registration(run, scope.agent), self._limits), digests, expires)
        self._runs[run.id] = run
        self._agents[run.id] += 1
        self._by_id[entry.registration.id] = entry
        self._by_scope[scope] = entry
        for digest in digests:
            self._by_digest[digest] = entry
        self._tasks.start_soon(self._live, entry)
        return entry

    def _living(self, scope: Scope) -> Entry | None:
        """Return the registration of an agent, unless it has expired."""
        entry = self._by_scope.get(scope)
        if entry is None or entry.ended.is_set():
            return None
        if entry.expires <= self._now():
            self._end(entry, EXPIRED)
            return None
        return entry

    async def _live(self, entry: Entry) -> None:
        try:
            await entry.door.run(entry.ended)
        finally:
            with anyio.CancelScope(shield=True):
                await self._forget(entry.scope)
            del self._by_scope[entry.scope]
            self._leave(entry.scope.run)
            entry.closed.set()

    def _end(self, entry: Entry, past: Past) -> None:
        del self._by_id[entry.registration.id]
        for digest in entry.digests:
            del self._by_digest[digest]
            self._past[digest] = past
        while len(self._past) > REMEMBERED:
            del self._past[next(iter(self._past))]
        entry.ended.set()

    async def _forget(self, scope: Scope) -> None:
        try:
            with anyio.fail_after(LEDGER_SECONDS):
                await self._first.engines.ledger.forget_scope(scope)
        except Exception as error:  # noqa: BLE001  whatever the store's fault, the registration ends
            _log.warning("the ledger could not forget: %s", type(error).__name__)

    def _leave(self, run: RunId) -> None:
        """Let go of a run whose last agent has left, unless it is the gateway's own."""
        self._agents[run] -= 1
        if run != self._first.id and not self._agents[run]:
            del self._agents[run]
            del self._runs[run]
            self._first.recoveries.end(run)


@asynccontextmanager
async def open_register(run: Run, now: Clock = time.time) -> AsyncIterator[Register]:
    """Hold the registrations of a gateway, and end them all on leaving."""
    sweeping = anyio.CancelScope()
    async with background() as tasks:
        register = Register(run, tasks, now)
        tasks.start_soon(_sweep, register, sweeping)
        try:
            yield register
        finally:
            sweeping.cancel()
            register.close()


async def _sweep(register: Register, until: anyio.CancelScope) -> None:
    with until:
        while True:
            await anyio.sleep(SWEEP)
            register.sweep()


def _joined(run: Run, other: RunId) -> Run:
    """Return a run on the servers of `run`, with an allowance of its own."""
    return replace(run, id=other, allowance=Allowance(run.allowance.limit))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
