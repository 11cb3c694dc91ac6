"""What the gateway shows of an agent's tools, and how its clients hear that it changed."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from weakref import WeakSet

import anyio
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp_types import ServerCapabilities

from seriatim.runtime.servers.session import ListedTool
from seriatim.runtime.tools import Listings, tools_of
from seriatim.topology.models import Skill

LISTENERS: Final = 16
"""Subscriptions that one agent's clients may have open at once; each client needs one."""


class ChangingServer(Server[dict[str, Any]]):
    """The SDK's server, which says to every client that its tools may change, and nothing else."""

    def get_capabilities(self, *more: Any, **options: Any) -> ServerCapabilities:
        capabilities = super().get_capabilities(*more, **options)
        if capabilities.tools:
            capabilities.tools.list_changed = True
        if capabilities.prompts:
            capabilities.prompts.list_changed = False
        if capabilities.resources:
            capabilities.resources.list_changed = False
            capabilities.resources.subscribe = False
        return capabilities


class Advertisement:
    """The tools of one agent as its servers list them now.

    Attributes:
        listen: answers `subscriptions/listen`, by which clients of the newest protocol hear.
    """

    def __init__(self, servers: Listings, skills: Sequence[Skill]) -> None:
        self._servers: Final = servers
        self._skills: Final = skills
        self._edition = servers.edition
        self._tools: Mapping[str, ListedTool] = self._listed()
        self._bus: Final = InMemorySubscriptionBus()
        self.listen: Final = ListenHandler(self._bus, max_subscriptions=LISTENERS)
        self._clients: Final[WeakSet[Connection]] = WeakSet()

    @property
    def tools(self) -> tuple[ListedTool, ...]:
        """What the agent is shown, in the order of its skills."""
        return tuple(self._current().values())

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        """Return the input schema of a tool that the agent is shown."""
        tool = self._current().get(name)
        return tool.input_schema if tool else None

    def attend(self, session: ServerSession) -> None:
        """Remember a client that has listed the tools, until its connection ends."""
        # The session is that of one request; the connection behind it has no public name.
        self._clients.add(session._connection)

    async def tools_changed(self) -> None:
        """Tell every client; each protocol has its way, and drops what goes the other."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._bus.publish, ToolsListChanged())
            for client in list(self._clients):
                tasks.start_soon(client.send_tool_list_changed)

    def _current(self) -> Mapping[str, ListedTool]:
        if self._edition != self._servers.edition:
            self._edition = self._servers.edition
            self._tools = self._listed()
        return self._tools

    def _listed(self) -> Mapping[str, ListedTool]:
        return {tool.name: tool for tool in tools_of(self._servers, self._skills)}
