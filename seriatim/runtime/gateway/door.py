"""The way in for one registration: its own MCP server, its sessions, and what is in flight.

Each registration has a server to itself, so that nothing of one agent, be it a session, a request
id or a stream, is ever within reach of another.
"""

import json
from typing import Final, assert_never

import anyio
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import INVALID_REQUEST, JSONRPCError, JSONRPCRequest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from seriatim.runtime.gateway.exchange import Exchange
from seriatim.runtime.gateway.incoming import BrokenAnswer, Message, Nothing, Reply, meaning_of
from seriatim.runtime.gateway.registrations import Registration
from seriatim.runtime.gateway.request_body import (
    BodyTooLargeError,
    BodyTooSlowError,
    read_body,
    replayed,
)
from seriatim.runtime.gateway.server import gateway_for
from seriatim.topology.models import GatewayLimits

MOST_REQUESTS: Final = 512
"""HTTP requests of one registration at once: a call and a stream of events for each of 256 clients.

More than its calls in flight, because a request may be a stream that only listens."""
BODY_SECONDS: Final = 60.0
"""In which the body of a request has to arrive: 64 MiB at 9 Mbit/s."""
MOST_UNANSWERED: Final = 1000
"""Request ids that are kept for clients which left before their answer came."""


class Door:
    """Serves one registration over HTTP for as long as `run` runs."""

    def __init__(self, registration: Registration, limits: GatewayLimits) -> None:
        self.registration: Final = registration
        self._largest: Final = limits.request_size
        self._sessions: Final = StreamableHTTPSessionManager(
            gateway_for(registration),
            session_idle_timeout=limits.session_idle,
            max_sessions=limits.sessions,
            max_request_body_size=limits.request_size,
        )
        self._open: Final = anyio.Event()
        self._in_flight: Final[set[anyio.CancelScope]] = set()
        self._unanswered: Final[dict[tuple[str, str], None]] = {}

    @property
    def requests(self) -> int:
        """How many HTTP requests are open."""
        return len(self._in_flight)

    async def run(self, ended: anyio.Event) -> None:
        """Hold the sessions until `ended`, and then cancel them and all that is in flight.

        Nothing but `ended` ends it, so that a gateway which stops can let calls finish first.
        """
        with anyio.CancelScope(shield=True):
            async with self._sessions.run():
                self._open.set()
                await ended.wait()
                for request in self._in_flight:
                    request.cancel()

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request of the registration's agent."""
        if len(self._in_flight) >= MOST_REQUESTS:
            message = f"this agent has {MOST_REQUESTS} requests open, as many as it may"
            await _turned_away(429, message)(scope, receive, send)
            return
        exchange = Exchange(scope, receive, send)
        with anyio.CancelScope() as until_ended:
            self._in_flight.add(until_ended)
            try:
                await self._open.wait()
                await self._answer(exchange)
            finally:
                self._in_flight.discard(until_ended)
        if until_ended.cancelled_caught and not exchange.begun:
            await _turned_away(401, "this registration has been ended")(scope, receive, send)

    async def _answer(self, exchange: Exchange) -> None:
        scope = exchange.scope
        try:
            body = await read_body(scope, exchange.receive, self._largest, BODY_SECONDS)
        except BodyTooLargeError:
            message = f"the request is larger than {self._largest} bytes"
            await _turned_away(413, message)(scope, exchange.receive, exchange.send)
            return
        except BodyTooSlowError:
            message = f"the request did not arrive within {BODY_SECONDS:g} seconds"
            await _turned_away(408, message)(scope, exchange.receive, exchange.send)
            return
        session = Headers(scope=scope).get("mcp-session-id", "")[:64]
        if scope["method"] != "POST" or _is_modern(scope):
            receive = replayed(body, exchange.receive)
            await self._sessions.handle_request(scope, receive, exchange.send)
            return
        # Read here already: the SDK says at length what a body is not, in the words of a library.
        match meaning_of(body):
            case Message(JSONRPCRequest(id=id_)) if session:
                await self._answer_request(exchange, body, (session, str(id_)))
            case Message():
                receive = replayed(body, exchange.receive)
                await self._sessions.handle_request(scope, receive, exchange.send)
            case BrokenAnswer(error):
                receive = replayed(_written(error), exchange.receive)
                await self._sessions.handle_request(scope, receive, exchange.send)
            case Reply(error):
                answer = Response(_written(error), 400, media_type="application/json")
                await answer(scope, exchange.receive, exchange.send)
            case Nothing():
                message = "this is no JSON-RPC message"
                await _turned_away(400, message)(scope, exchange.receive, exchange.send)
            case meaning:
                assert_never(meaning)

    async def _answer_request(self, exchange: Exchange, body: bytes, key: tuple[str, str]) -> None:
        """Answer a request of the handshake era, unless another of its session has its id.

        The SDK would give the answer of one to the other, and leave the one waiting for ever.

        Args:
            key: the session, and the id as the SDK tells ids apart.
        """
        if key in self._unanswered:
            shown = json.dumps(key[1][:64])
            message = f"request id {shown} is in use in this session; give each request its own"
            await _turned_away(400, message)(exchange.scope, exchange.receive, exchange.send)
            return
        self._unanswered[key] = None
        try:
            receive = replayed(body, exchange.receive)
            await self._sessions.handle_request(exchange.scope, receive, exchange.send)
        finally:
            # What was not answered may yet be: its id stays in use.
            if exchange.complete or not exchange.begun:
                self._unanswered.pop(key, None)
            elif len(self._unanswered) > MOST_UNANSWERED:
                del self._unanswered[next(iter(self._unanswered))]


def _is_modern(scope: Scope) -> bool:
    """Return whether the SDK takes a request for one of a protocol without handshake."""
    version = Headers(scope=scope).get("mcp-protocol-version")
    return version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS


def _written(error: JSONRPCError) -> bytes:
    return error.model_dump_json(by_alias=True, exclude_unset=True).encode()


def _turned_away(status: int, message: str) -> Response:
    """Return an answer that says, in MCP's own form, why there is no other."""
    error = {"code": INVALID_REQUEST, "message": message}
    body = {"jsonrpc": "2.0", "id": None, "error": error}
    return Response(json.dumps(body), status, media_type="application/json")
