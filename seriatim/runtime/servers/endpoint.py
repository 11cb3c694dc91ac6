"""A server that is reached over streamable HTTP."""

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import httpx2
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from seriatim.runtime.servers.link import TransportStreams
from seriatim.topology.models import HttpTransport

CONNECTING: Final = 10.0
"""Seconds to reach the endpoint; how long an answer may take is for whoever makes the call."""

LARGEST_ANSWER: Final = 256 * 1024 * 1024
"""Bytes of one answer, or one event of a stream: as many as a line of a server over stdio has."""

NOTIFYING: Final = 5.0
"""Seconds for what has no answer: the SDK sends nothing else of the session meanwhile."""

UNREACHED: Final = {"seriatim": "unreached"}
"""The `data` of an error that stands for a fault below MCP."""

ACCEPTED: Final = 202
NOT_FOUND: Final = 404
BAD_GATEWAY: Final = 502

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"


class Endpoint:
    """The way to a server over streamable HTTP; sends its definition's headers and no others."""

    evidence: Final = ""
    heard: Final = True

    def __init__(self, transport: HttpTransport) -> None:
        self._transport: Final = transport
        self._forgotten: Final = anyio.Event()

    @property
    def fate(self) -> str:
        return "has forgotten the session" if self._forgotten.is_set() else ""

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[TransportStreams]:
        async with (
            _Client(
                self._forgotten,
                headers=dict(self._transport.headers),
                timeout=httpx2.Timeout(CONNECTING, read=None),
            ) as client,
            streamable_http_client(
                self._transport.endpoint, http_client=client, max_sse_event_size=LARGEST_ANSWER
            ) as streams,
        ):
            yield streams

    async def ended(self) -> None:
        await self._forgotten.wait()


class _Client(httpx2.AsyncClient):
    """Turns each fault of HTTP into a JSON-RPC error that says what it was.

    The SDK's transport keeps a status to itself, reads without a bound, and lets one failed
    connection end the whole session with everything in it.

    Args:
        forgotten: set when the server says that there is no such session as ours.
    """

    def __init__(self, forgotten: anyio.Event, **options: Any) -> None:
        super().__init__(**options)
        self._forgotten: Final = forgotten

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        message = _message(request.content) if request.method == "POST" else None
        awaited = request.method == "GET" or isinstance(message, JSONRPCRequest)
        limit = math.inf if awaited else NOTIFYING
        try:
            with anyio.fail_after(limit):
                response = await super().send(request, **options)
                if response.is_success and _kind(response) == EVENTS:
                    return response
                return await self._whole(request, message, response)
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            reason = str(error).rstrip(".") or type(error).__name__
        except TimeoutError:
            reason = f"nothing within {limit:g} seconds"
        return _lost(request, BAD_GATEWAY, f"no answer over HTTP: {reason}")

    async def _whole(
        self, request: httpx2.Request, sent: JSONRPCMessage | None, response: httpx2.Response
    ) -> httpx2.Response:
        """Return a response that is no stream of events with its body, or an error instead."""
        try:
            body = await _body(response)
        finally:
            await response.aclose()
        if response.has_redirect_location:
            hollow = _with(response, b"")
            hollow.next_request = response.next_request
            return hollow
        if len(body) > LARGEST_ANSWER:
            return _bad(request, f"the answer has more than {LARGEST_ANSWER} bytes")
        answer = _message(body)
        if not response.is_success:
            unknown = isinstance(answer, JSONRPCError) and answer.error.code == METHOD_NOT_FOUND
            in_session = MCP_SESSION_ID in request.headers
            if response.status_code == NOT_FOUND and in_session and not unknown:
                self._forgotten.set()
                return _lost(request, NOT_FOUND, "the server has forgotten the session")
            if isinstance(answer, JSONRPCError):
                return _with(response, body, JSON)
            status = f"HTTP {response.status_code} {response.reason_phrase}"
            return _lost(request, response.status_code, status)
        if not isinstance(sent, JSONRPCRequest) or response.status_code == ACCEPTED:
            return _with(response, b"")
        if _kind(response) != JSON:
            kind = f"is no MCP but {_kind(response)}" if _kind(response) else "has no content type"
            return _bad(request, f"the answer {kind}")
        if not isinstance(answer, JSONRPCResponse | JSONRPCError):
            return _bad(request, "the answer is no valid JSON-RPC message")
        if answer.id is not None and str(answer.id) != str(sent.id):
            return _bad(request, "the answer is for another request")
        return _with(response, body)


async def _body(response: httpx2.Response) -> bytes:
    """Return the body, or as much of one that is too long as shows that it is."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.aiter_bytes():
        chunks.append(chunk)
        size += len(chunk)
        if size > LARGEST_ANSWER:
            break
    return b"".join(chunks)


def _kind(response: httpx2.Response) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _message(body: bytes) -> JSONRPCMessage | None:
    try:
        return jsonrpc_message_adapter.validate_json(body, by_name=False)
    except ValueError:
        return None


def _with(response: httpx2.Response, body: bytes, kind: str = "") -> httpx2.Response:
    """Return a response with a body that was read; its headers, but for those of the transfer."""
    headers = {
        name: value
        for name, value in response.headers.items()
        if name not in ("content-encoding", "content-length", "transfer-encoding")
    }
    if kind:
        headers["content-type"] = kind
    return httpx2.Response(
        response.status_code, headers=headers, content=body, request=response.request
    )


def _lost(request: httpx2.Request, status: int, message: str) -> httpx2.Response:
    """Return an error that says that the server was not reached, or is gone."""
    return _error(
        request, status, ErrorData(code=CONNECTION_CLOSED, message=message.strip(), data=UNREACHED)
    )


def _bad(request: httpx2.Request, message: str) -> httpx2.Response:
    """Return an error for an answer that is none."""
    return _error(request, BAD_GATEWAY, ErrorData(code=INTERNAL_ERROR, message=message))


def _error(request: httpx2.Request, status: int, error: ErrorData) -> httpx2.Response:
    body = JSONRPCError(jsonrpc="2.0", id=None, error=error)
    text = body.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return httpx2.Response(status, json=text, request=request)
