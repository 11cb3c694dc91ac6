"""HTTP requests as no MCP client would make them, or as one would, byte by byte."""

from typing import Any

import httpx2

MODERN = "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
ACCEPT = {"Accept": "application/json, text/event-stream"}
HELLO = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "by hand", "version": "0"},
    },
}


def modern_headers(method: str, params: dict[str, Any]) -> dict[str, str]:
    """Return the headers that a request of the modern era has beside the token."""
    name = {"Mcp-Name": params["name"]} if "name" in params else {}
    return {**ACCEPT, "MCP-Protocol-Version": MODERN, "Mcp-Method": method, **name}


async def post(
    url: str, method: str, params: dict[str, Any], *, id_: object = 1, **headers: str
) -> httpx2.Response:
    """Send one request of the modern era; `_` in the names of headers stands for `-`."""
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    body = {"jsonrpc": "2.0", "id": id_, "method": method, "params": {"_meta": ENVELOPE, **params}}
    async with httpx2.AsyncClient() as http:
        return await http.post(
            url, json=body, headers=modern_headers(method, params) | more, timeout=30
        )


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    """Return the parameters of a `tools/call`."""
    return {"name": tool, "arguments": arguments}


def bearer(token: str) -> dict[str, str]:
    """Return the header that carries a token."""
    return {"Authorization": f"Bearer {token}"}


async def open_session(http: httpx2.AsyncClient, url: str, token: str) -> dict[str, str]:
    """Open a session of the handshake era, and return the headers of further requests in it."""
    headers = ACCEPT | bearer(token)
    opened = await http.post(url, json=HELLO, headers=headers)
    headers |= {"Mcp-Session-Id": opened.headers["Mcp-Session-Id"]}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (await http.post(url, json=ready, headers=headers)).status_code == 202
    return headers
