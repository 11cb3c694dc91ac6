"""What makes us ask a server for its tools again."""

import math
from typing import Final

import anyio
from mcp import ClientSession, MCPError
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp_types import ToolListChangedNotification
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from seriatim.runtime.servers.pauses import Pauses


class Suspicion:
    """Whether the tools of a server may be others than it listed, or the server is gone."""

    def __init__(self) -> None:
        self._raised = anyio.Event()
        self._settled = anyio.Event()
        self._settled.set()

    def arise(self) -> None:
        """Note that the tools may have changed."""
        if self._settled.is_set():
            self._settled = anyio.Event()
        self._raised.set()

    async def arisen(self) -> None:
        """Wait until there is a suspicion, and take it up."""
        await self._raised.wait()
        self._raised = anyio.Event()

    def settle(self) -> None:
        """Note that the tools are known, unless a further suspicion has arisen meanwhile."""
        if not self._raised.is_set():
            self._settled.set()

    async def settled(self) -> None:
        """Wait until the tools are known."""
        while not self._settled.is_set():
            await self._settled.wait()

    async def hear(self, message: IncomingMessage) -> None:
        """Take up what a server of the handshake era says of itself."""
        if isinstance(message, ToolListChangedNotification):
            self.arise()

    async def subscribe(self, session: ClientSession) -> None:
        """Hear of changes from a server of the newest protocol, which tells only those who ask."""
        capabilities = session.server_capabilities
        tells = capabilities and capabilities.tools and capabilities.tools.list_changed
        if not tells or session.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return
        pauses: Final = Pauses()
        while True:
            since = math.inf
            try:
                async with listen(session, tools_list_changed=True) as changes:
                    since = anyio.current_time()
                    async for _ in changes:
                        self.arise()
            except SubscriptionLost:
                pass
            except MCPError:
                if since == math.inf:
                    return  # it does not offer what it says; each reconnection asks again
            await anyio.sleep(pauses.after(max(0.0, anyio.current_time() - since)))
            # What it would have told meanwhile is lost.
            self.arise()
