"""What is to be told of the servers of a run while it goes on."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias, final

from seriatim.runtime.servers.listing import ToolChange


@final
@dataclass(frozen=True, slots=True)
class ServersAwaited:
    """Servers have not answered yet, and somebody waits for them."""

    servers: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class ServerLost:
    """A server does not answer, at its start or any more.

    Attributes:
        detail: why, as a clause, fit to be shown.
        retried: whether it is tried again for as long as the run lasts.
    """

    server: str
    detail: str
    retried: bool


@final
@dataclass(frozen=True, slots=True)
class ServerBack:
    """A server that was lost answers."""

    server: str


@final
@dataclass(frozen=True, slots=True)
class ToolsListed:
    """A server lists its tools for the first time, or other tools than before.

    Attributes:
        changes: none for the first time.
    """

    server: str
    changes: tuple[ToolChange, ...]


ServerNews: TypeAlias = ServersAwaited | ServerLost | ServerBack | ToolsListed

Watch: TypeAlias = Callable[[ServerNews], Awaitable[None]]
"""Told of each change once; what it raises ends the run."""


async def no_watch(_news: ServerNews) -> None:
    """Receive news that nobody asked for."""
