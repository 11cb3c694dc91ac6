"""What a connection needs of the way to a server, be that a process or an endpoint."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

# The SDK exports the protocol of transports, but not the name of the pair that they yield.
from mcp.client._transport import TransportStreams

__all__ = ["Link", "TransportStreams"]


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

    def streams(self) -> AbstractAsyncContextManager[TransportStreams]:
        """Reach the server, and let go of it for certain on leaving."""
        ...

    async def ended(self) -> None:
        """Wait until the server has ended, or for ever if that cannot be told."""
        ...
