"""Resources and prompts of servers, as they pass through a gateway to one agent.

Not gated, but nothing passes from a server of which the agent holds no skill, and no kind that the
settings do not expose to it.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast, final

import anyio
from mcp import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, SERVER_INFO_META_KEY

from interceptors import (
    DEFAULT_TIMEOUT,
    JsonObject,
    JsonValue,
    ServerProtocolError,
    ServerUnavailableError,
)
from seriatim.runtime.run import Run
from seriatim.runtime.servers.running import RunningServers
from seriatim.topology.models import Agent, Exposed

MOST_PAGES: Final = 1000
"""Pages of one server's list that are read; more than that is a list without an end."""

KINDS: Final[Mapping[str, frozenset[Exposed]]] = {
    "resources/list": frozenset({Exposed.RESOURCES}),
    "resources/templates/list": frozenset({Exposed.RESOURCES}),
    "resources/read": frozenset({Exposed.RESOURCES}),
    "prompts/list": frozenset({Exposed.PROMPTS}),
    "prompts/get": frozenset({Exposed.PROMPTS}),
    "completion/complete": frozenset({Exposed.RESOURCES, Exposed.PROMPTS}),
}
"""The methods that pass, each with the kinds of which one must be exposed."""

CAPABILITIES: Final[Mapping[str, str]] = {
    "resources": "resources/list",
    "prompts": "prompts/list",
    "completions": "completion/complete",
}
"""The capabilities of an MCP server that stand for them, each with a method that it needs."""

_log: Final = logging.getLogger(__name__)


@final
@dataclass(frozen=True, slots=True)
class _Entry:
    """One entry of a list, and whose it is."""

    server: str
    entry: JsonObject


@final
@dataclass(frozen=True, slots=True)
class Passage:
    """The way of one agent to what the servers behind its skills hold.

    Attributes:
        names: the servers, in the order of the agent's skills.
    """

    servers: RunningServers
    names: tuple[str, ...]
    exposed: frozenset[Exposed]

    def passes(self, method: str) -> bool:
        """Return whether a method is answered at all."""
        return bool(KINDS[method] & self.exposed)

    async def answer(
        self, method: str, params: JsonObject, capabilities: JsonObject
    ) -> dict[str, Any]:
        """Return the result of one of `KINDS`.

        Args:
            capabilities: what the client declares that servers may ask of it.

        Raises:
            MCPError: when the answer is an error, the server's own or one that says whose it is.
        """
        if not self.passes(method):
            raise MCPError(METHOD_NOT_FOUND, "Method not found", method)
        match method:
            case "resources/list":
                return {"resources": await self._resources("resources", "uri")}
            case "resources/templates/list":
                listed = await self._resources("resourceTemplates", "uriTemplate")
                return {"resourceTemplates": listed}
            case "prompts/list":
                prompts = _named(await self._listed("prompts"))
                return {"prompts": [{**e.entry, "name": name} for name, e in prompts.items()]}
            case "prompts/get":
                server, name = await self._prompt(params.get("name"))
                return await self._ask(server, method, {**params, "name": name}, capabilities)
            case "resources/read":
                return await self._read(params, capabilities)
            case _:
                server, sent = await self._referred(params)
                return await self._ask(server, method, sent, capabilities)

    async def _resources(self, kind: str, key: str) -> list[JsonObject]:
        """Return the resources of all servers, but for those that nobody could tell apart."""
        entries = await self._listed(kind)
        owners = _owners(entries, key)
        for uri, servers in owners.items():
            if len(servers) > 1:
                _log.warning("`%s` is not shown: %s offer it", uri, _all(servers))
        return [each.entry for each in entries if len(owners[str(each.entry.get(key))]) == 1]

    async def _read(self, params: JsonObject, capabilities: JsonObject) -> dict[str, Any]:
        holders = self._holders("resources")
        if len(holders) > 1:
            uri = str(params.get("uri"))
            holders = _owners(await self._listed("resources"), "uri").get(uri) or holders
        if len(holders) == 1:
            return await self._ask(holders[0], "resources/read", params, capabilities)
        return await self._read_unlisted(holders, params, capabilities)

    async def _read_unlisted(
        self, holders: Sequence[str], params: JsonObject, capabilities: JsonObject
    ) -> dict[str, Any]:
        """Read from the one of several servers that has it: what a list leaves out may be there."""
        found: dict[str, dict[str, Any]] = {}
        errors: list[MCPError] = []
        for server in holders:
            try:
                found[server] = await self._ask(server, "resources/read", params, capabilities)
            except MCPError as error:
                errors.append(error)
        match list(found.values()):
            case [result]:
                return result
            case []:
                raise errors[0] if errors else MCPError(INVALID_PARAMS, "no server has resources")
            case _:
                raise _ambiguous(str(params.get("uri")), found)

    async def _prompt(self, shown: object) -> tuple[str, str]:
        """Return the server and the name behind a prompt's name."""
        entries = await self._listed("prompts")
        prompts = _named(entries)
        if isinstance(shown, str) and shown in prompts:
            return prompts[shown].server, str(prompts[shown].entry.get("name"))
        if servers := _owners(entries, "name").get(str(shown)):
            raise _ambiguous(str(shown), servers)
        raise MCPError(INVALID_PARAMS, f"Unknown prompt: {shown}")

    async def _referred(self, params: JsonObject) -> tuple[str, JsonObject]:
        """Return the server that completes what a reference names, and the params for it."""
        match params.get("ref"):
            case {"type": "ref/prompt", "name": shown, **rest} if self.passes("prompts/get"):
                server, name = await self._prompt(shown)
                reference = {**rest, "type": "ref/prompt", "name": name}
                return server, {**params, "ref": cast("JsonValue", reference)}
            case {"type": "ref/resource", "uri": str(uri)} if self.passes("resources/read"):
                templates = await self._listed("resourceTemplates")
                owners = _owners(templates, "uriTemplate").get(uri) or self._holders("resources")
                if len(owners) == 1:
                    return owners[0], params
                raise _ambiguous(uri, owners)
            case _:
                raise MCPError(INVALID_PARAMS, "there is nothing of that kind to complete")

    def _holders(self, capability: str) -> list[str]:
        """Return the servers that declare a capability."""
        return [
            name
            for name in self.names
            if getattr(self.servers.capabilities(name), capability) is not None
        ]

    async def _listed(self, kind: str) -> list[_Entry]:
        """Return all that the servers list of a kind; one that cannot answer lists nothing."""
        method = "resources/templates/list" if kind == "resourceTemplates" else f"{kind}/list"
        holders = self._holders("prompts" if kind == "prompts" else "resources")
        lists: dict[str, list[_Entry]] = {}

        async def read(server: str) -> None:
            try:
                lists[server] = await self._pages(server, method, kind)
            except MCPError as error:
                _log.warning("%s does not answer %s: %s", server, method, error)

        async with anyio.create_task_group() as tasks:
            for server in holders:
                tasks.start_soon(read, server)
        return [entry for server in holders for entry in lists.get(server, [])]

    async def _pages(self, server: str, method: str, kind: str) -> list[_Entry]:
        entries: list[_Entry] = []
        params: JsonObject = {}
        for _ in range(MOST_PAGES):
            page = await self._ask(server, method, params, {})
            entries += [_Entry(server, entry) for entry in page.get(kind) or ()]
            if page.get("nextCursor") is None:
                break
            params = {"cursor": page["nextCursor"]}
        return entries

    async def _ask(
        self, server: str, method: str, params: JsonObject, capabilities: JsonObject
    ) -> dict[str, Any]:
        """Return a server's result without what is its connection's."""
        with anyio.move_on_after(DEFAULT_TIMEOUT):
            try:
                result = await self.servers.read(server, method, params, capabilities)
            except ServerProtocolError as error:
                raise MCPError(error.code, error.message, *error.data) from error
            except ServerUnavailableError as error:
                raise MCPError(INTERNAL_ERROR, str(error)) from error
            meta = dict(result.get("_meta") or {})
            meta.pop(SERVER_INFO_META_KEY, None)
            bare = {key: value for key, value in result.items() if key != "_meta"}
            return {**bare, "_meta": meta} if meta else bare
        message = f"server {server} did not answer within {DEFAULT_TIMEOUT:g} seconds"
        raise MCPError(INTERNAL_ERROR, message)


def passage(run: Run, agent: Agent) -> Passage:
    """Return the way of an agent to the resources and prompts that the settings expose to it."""
    names = tuple(dict.fromkeys(skill.tool.server for skill in agent.skills))
    return Passage(run.servers, names, run.workspace.settings.expose.to(agent.id))


def _owners(entries: Iterable[_Entry], key: str) -> dict[str, list[str]]:
    """Return, for each value of `key`, the servers that list it."""
    owners: dict[str, list[str]] = {}
    for each in entries:
        servers = owners.setdefault(str(each.entry.get(key)), [])
        if each.server not in servers:
            servers.append(each.server)
    return owners


def _named(entries: Sequence[_Entry]) -> dict[str, _Entry]:
    """Return prompts by the names under which they are shown.

    A name that several servers have is shown with the server's before it; what is still not one
    prompt's alone is not shown.
    """
    owners = _owners(entries, "name")
    shown: dict[str, list[_Entry]] = {}
    for each in entries:
        name = str(each.entry.get("name"))
        alone = len(owners[name]) == 1
        shown.setdefault(name if alone else f"{each.server}/{name}", []).append(each)
    return {name: found[0] for name, found in shown.items() if len(found) == 1}


def _ambiguous(name: str, servers: Iterable[str]) -> MCPError:
    message = f"`{name}` may be of {_all(servers)}, and it cannot be told which is meant"
    return MCPError(INVALID_PARAMS, message)


def _all(servers: Iterable[str]) -> str:
    return " and ".join(f"`{server}`" for server in servers)
