"""The first words with a server: which protocol it speaks."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import anyio
from mcp import ClientSession, MCPError
from mcp_types import UNSUPPORTED_PROTOCOL_VERSION
from pydantic import ValidationError

PROBE_SHARE: Final = 1 / 3
"""Part of the time for the start in which a server may answer to the newest protocol."""

Greeting: TypeAlias = Callable[[ClientSession, float], Awaitable[None]]
"""Agrees on a protocol version with a server; takes the seconds that the start may take."""


async def greet_either_era(session: ClientSession, limit: float) -> None:
    """Ask whether the server speaks the newest protocol, and go on with the older one if not."""
    # The SDK's own negotiation waits for 10 seconds for an answer to the new question, which is all
    # the time that a server has; some servers never answer what they do not know.
    with anyio.move_on_after(limit * PROBE_SHARE):
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


async def greet_handshake_era(session: ClientSession, _limit: float) -> None:
    """Ask nothing but the old question."""
    await session.initialize()
