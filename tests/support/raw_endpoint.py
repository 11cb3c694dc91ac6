"""An MCP server over HTTP that is written by hand, byte by byte, so that it can answer wrongly."""

import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

OK = b"HTTP/1.1 200 OK\r\n"
JSON = b"Content-Type: application/json\r\n"
EVENTS = b"Content-Type: text/event-stream\r\n"
HTML = b"Content-Type: text/html\r\n"
NO_GZIP = b"Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello"
TWO = b"Content-Length: 2\r\n\r\n"
OTHER = b'Content-Length: 39\r\n\r\n{"jsonrpc":"2.0","id":999,"result":{}}\n'

FAULTS = {
    "truncated": OK + JSON + b"Content-Length: 999\r\n\r\n{",
    "undecodable": OK + JSON + NO_GZIP,
    "undecodable stream": OK + EVENTS + NO_GZIP,
    "wrong type": OK + HTML + TWO + b"hi",
    "no type": OK + TWO + b"hi",
    "no JSON": OK + JSON + TWO + b"hi",
    "no message": OK + JSON + TWO + b"{}",
    "another's": OK + JSON + OTHER,
    "dropped": b"",
    "no HTTP": b"SSH-2.0-OpenSSH_9.2\r\n",
    "dropped stream": OK + EVENTS + b"Transfer-Encoding: chunked\r\n\r\n10\r\ndata: ",
    "ended stream": OK + EVENTS + b"Connection: close\r\n\r\n: hello\n\n",
    "bad redirect": b"HTTP/1.1 307 X\r\nLocation: /mcp\r\n" + NO_GZIP,
}
"""What is sent, and the connection closed, when a tool of that name is called."""

BIG = json.dumps({"jsonrpc": "2.0", "id": 1, "result": "x" * 1_000_000}).encode()
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("good", "slow", *FAULTS)]


@dataclass
class RawEndpoint:
    """What a test knows of the server.

    Attributes:
        sessions: those that it remembers; in the modern era it has none.
        started: set when `slow` was called, which ends when `go` is set.
    """

    modern: bool
    url: str = ""
    sessions: set[str] = field(default_factory=set)
    opened: int = 0
    started: anyio.Event = field(default_factory=anyio.Event)
    go: anyio.Event = field(default_factory=anyio.Event)

    async def serve(self, stream: SocketStream) -> None:
        async with stream:
            reader = BufferedByteReceiveStream(stream)
            with suppress(anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
                while True:
                    head = (await reader.receive_until(b"\r\n\r\n", 65536)).decode().lower()
                    fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:])
                    body = await reader.receive_exactly(int(fields.get("content-length", "0")))
                    answer, stays = await self._answer(head.split()[0], fields, body)
                    await stream.send(answer)
                    if not stays:
                        return

    async def _answer(self, verb: str, fields: dict[str, str], body: bytes) -> tuple[bytes, bool]:
        if verb != "post":
            return _response(405, b""), True
        message = json.loads(body)
        session = fields.get("mcp-session-id")
        if session is not None and session not in self.sessions:
            return _response(404, b"who are you?", kind="text/plain"), True
        if "id" not in message:
            return _response(202, b""), True
        method, params = message["method"], message.get("params") or {}
        name = params.get("name")
        if method == "tools/call" and name in FAULTS:
            return FAULTS[name], False
        if name == "oversized":
            return _response(200, BIG), True
        if name == "bomb":
            return _response(200, gzip.compress(BIG), more="Content-Encoding: gzip\r\n"), True
        if method == "tools/call" and name == "slow":
            self.started.set()
            await self.go.wait()
        more = ""
        if method == "initialize":
            self.opened += 1
            self.sessions.add(f"session-{self.opened}")
            more = f"Mcp-Session-Id: session-{self.opened}\r\n"
        return _response(200, self._result(message["id"], method), more=more), True

    def _result(self, id_: Any, method: str) -> bytes:
        cached = {"ttlMs": 0, "cacheScope": "private"} if self.modern else {}
        results: dict[str, Any] = {
            "tools/list": {"tools": TOOLS} | cached,
            "tools/call": {"content": [{"type": "text", "text": "well"}]},
        }
        if self.modern:
            versions = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            results["server/discover"] = versions | cached
        else:
            results["initialize"] = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "raw", "version": "1"},
            }
        if method not in results:
            error = {"code": -32601, "message": "Method not found"}
            return json.dumps({"jsonrpc": "2.0", "id": id_, "error": error}).encode()
        stamp = {"resultType": "complete"} if self.modern else {}
        return json.dumps({"jsonrpc": "2.0", "id": id_, "result": results[method] | stamp}).encode()


def _response(status: int, body: bytes, *, kind: str = "application/json", more: str = "") -> bytes:
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}"
    return head.encode() + b"\r\n" + body


@asynccontextmanager
async def raw_endpoint(*, modern: bool) -> AsyncIterator[RawEndpoint]:
    """Serve on a free port of this machine."""
    endpoint = RawEndpoint(modern)
    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        port = listener.extra(SocketAttribute.local_port)
        endpoint.url = f"http://127.0.0.1:{port}/mcp"
        tasks.start_soon(listener.serve, endpoint.serve)
        yield endpoint
        tasks.cancel_scope.cancel()
