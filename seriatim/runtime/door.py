"""The way in for one registration: its own MCP server, its sessions, and what is in flight.

Each registration has a server to itself, so that nothing of one agent, be it a session, a request
id or a stream, is ever within reach of another.
"""

import json
from typing import Any, Final

import anyio
import mcp_types
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic_core import from_json
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from seriatim.runtime.exchange import Exchange
from seriatim.runtime.gateway import gateway_for
from seriatim.runtime.registrations import Registration
from seriatim.runtime.request_body import (
    BodyTooLargeError,
    BodyTooSlowError,
    read_body,
    replayed,
)
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
        receive = replayed(body, exchange.receive)
        session = Headers(scope=scope).get("mcp-session-id", "")
        request = _request_id(body) if session and scope["method"] == "POST" else ""
        if not request:
            await self._sessions.handle_request(scope, receive, exchange.send)
            return
        key = (session[:64], request)
        if key in self._unanswered:
            # The SDK would give the answer of one to the other, and leave the one waiting for ever.
            message = f"request id {request} is in use in this session; give each request its own"
            await _turned_away(400, message)(scope, exchange.receive, exchange.send)
            return
        self._unanswered[key] = None
        try:
            await self._sessions.handle_request(scope, receive, exchange.send)
        finally:
            # What was not answered may yet be: its id stays in use.
            if exchange.complete or not exchange.begun:
                self._unanswered.pop(key, None)
            elif len(self._unanswered) > MOST_UNANSWERED:
                del self._unanswered[next(iter(self._unanswered))]


def _request_id(body: bytes) -> str:
    """Return the id of a JSON-RPC request as the SDK tells ids apart, or `""` for anything else."""
    try:
        message: Any = from_json(body)
    except ValueError:
        return ""
    match message:
        case {"method": _, "id": int() | str() as request} if not isinstance(request, bool):
            return json.dumps(str(request))
        case _:
            return ""


def _turned_away(status: int, message: str) -> Response:
    """Return an answer that says, in MCP's own form, why there is no other."""
    error = {"code": mcp_types.INVALID_REQUEST, "message": message}
    body = {"jsonrpc": "2.0", "id": None, "error": error}
    return Response(json.dumps(body), status, media_type="application/json")
