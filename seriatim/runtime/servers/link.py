"""What a connection needs of the way to a server, be that a process or an endpoint."""

from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

# The SDK exports the protocol of transports, but not the name of the pair that they yield.
from mcp.client._transport import TransportStreams

__all__ = ["Link", "NotStartedError", "TransportStreams"]


class NotStartedError(Exception):
    """A server's process cannot be started.

    Attributes:
        missing: the command or the directory that is at fault, as the server's definition has it.
    """

    def __init__(self, problem: str, missing: str) -> None:
        super().__init__(f"cannot be started: {problem}: `{missing}`")
        self.missing: Final = missing


class Link(Protocol):
    """The way to one server, gone once."""

    @property
    def fate(self) -> str:
        """What became of the server, as a clause (`exited with code 3`), or `""`."""
        ...

    @property
    def evidence(self) -> str:
        """What the server said last beside the protocol, or `""`."""
        ...

    @property
    def heard(self) -> bool:
        """Whether a server that has ended may have read what it was sent."""
        ...

    def streams(self) -> AbstractAsyncContextManager[TransportStreams]:
        """Reach the server, and let go of it for certain on leaving.

        Raises:
            NotStartedError: when there is no such server to start.
        """
        ...

    async def ended(self) -> None:
        """Wait until the server has ended, or for ever if that cannot be told."""
        ...
