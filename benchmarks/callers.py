"""Callers that cost next to nothing, so that what they wait for is the server's work."""

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import anyio
import h11

Era = Literal["handshake", "sessionless"]
VERSIONS: Mapping[Era, str] = {"handshake": "2025-11-25", "sessionless": "2026-07-28"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": VERSIONS["sessionless"],
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO = {
    "protocolVersion": VERSIONS["handshake"],
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1"},
}


class Caller:
    """One MCP client with at most one connection; the JSON of its calls is made once.

    Args:
        expected: what the answer to a call has to contain.
    """

    def __init__(self, url: str, token: str, expected: str) -> None:
        self._place = urlsplit(url)
        self._expected = expected.encode()
        self._headers = {
            "Host": self._place.netloc,
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            **({"Authorization": f"Bearer {token}"} if token else {}),
        }
        self._call = ""
        self._calls = 1

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Self]:
        """Hold a connection; a server closes one that is idle for some seconds."""
        host, port = self._place.hostname, self._place.port
        async with await anyio.connect_tcp(host or "", port or 0) as self._stream:
            self._http = h11.Connection(h11.CLIENT)
            yield self

    async def greet(self, era: Era, tool: str) -> None:
        """Open a session where the era knows sessions, and prepare the calls of `tool`."""
        params: dict[str, Any] = {"name": tool, "arguments": {}}
        match era:
            case "handshake":
                answer = await self._post(_message("initialize", HELLO))
                self._headers["MCP-Protocol-Version"] = VERSIONS[era]
                session = dict(answer.headers)[b"mcp-session-id"]
                self._headers["Mcp-Session-Id"] = session.decode()
                await self._post(_message("notifications/initialized", {}, id_=()))
            case "sessionless":
                params["_meta"] = ENVELOPE
                self._headers |= {
                    "MCP-Protocol-Version": VERSIONS[era],
                    "Mcp-Method": "tools/call",
                    "Mcp-Name": tool,
                }
        self._call = json.dumps({"jsonrpc": "2.0", "method": "tools/call", "params": params})[:-1]

    async def call(self) -> None:
        self._calls += 1
        answer = await self._post(f'{self._call}, "id": {self._calls}}}'.encode())
        if self._expected not in answer.body or b'"isError":true' in answer.body:
            raise AssertionError(f"{answer.status}: {answer.body.decode()}")

    async def _post(self, body: bytes) -> "_Answer":
        http, headers = self._http, {**self._headers, "Content-Length": str(len(body))}
        request = h11.Request(method="POST", target=self._place.path, headers=list(headers.items()))
        head = http.send(request) or b""
        await self._stream.send(head + (http.send(h11.Data(body)) or b""))
        http.send(h11.EndOfMessage())
        answer = _Answer()
        while True:
            match http.next_event():
                case h11.NEED_DATA:
                    http.receive_data(await self._stream.receive())
                case h11.Response() as response:
                    answer.status, answer.headers = response.status_code, response.headers
                case h11.Data(data=data):
                    answer.body += data
                case h11.EndOfMessage():
                    http.start_next_cycle()
                    return answer


@dataclass
class _Answer:
    status: int = 0
    headers: Iterable[tuple[bytes, bytes]] = ()
    body: bytes = b""


def _message(method: str, params: Mapping[str, Any], id_: tuple[int, ...] = (1,)) -> bytes:
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(message | {"id": id_[0]} if id_ else message).encode()


async def new_caller(url: str, era: Era, tool: str, *, token: str, expected: str) -> Caller:
    """Return a caller of `tool` that has its session, and no connection."""
    made = Caller(url, token, expected)
    async with made.connected():
        await made.greet(era, tool)
    return made
