"""A server that is reached over streamable HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CONNECTION_CLOSED, ErrorData, JSONRPCError, jsonrpc_message_adapter

from seriatim.runtime.link import TransportStreams
from seriatim.topology.models import HttpTransport

CONNECTING: Final = 10.0
"""Seconds to reach the endpoint; how long an answer may take is for whoever makes the call."""

LARGEST_EVENT: Final = 256 * 1024 * 1024
"""Bytes of one event of a stream, as many as a line of a server over stdio may have."""

UNREACHED: Final = {"seriatim": "unreached"}
"""The `data` of an error that stands for a fault below MCP."""


class Endpoint:
    """The way to a server over streamable HTTP; sends its definition's headers and no others."""

    fate: Final = ""
    evidence: Final = ""

    def __init__(self, transport: HttpTransport) -> None:
        self._transport: Final = transport

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[TransportStreams]:
        async with (
            _Client(
                headers=dict(self._transport.headers),
                timeout=httpx2.Timeout(CONNECTING, read=None),
            ) as client,
            streamable_http_client(
                self._transport.endpoint, http_client=client, max_sse_event_size=LARGEST_EVENT
            ) as streams,
        ):
            yield streams

    async def ended(self) -> None:
        await anyio.sleep_forever()


class _Client(httpx2.AsyncClient):
    """Turns each fault of HTTP into a JSON-RPC error that says what it was.

    The SDK's transport keeps a status to itself, and lets one failed connection end the whole
    session with everything in it.
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            response = await super().send(request, **options)
        except httpx2.TransportError as error:
            return _fault(
                request, 502, f"no answer over HTTP: {str(error) or type(error).__name__}"
            )
        if response.is_success or response.has_redirect_location:
            return response
        try:
            body = await response.aread()
        except httpx2.TransportError:
            body = b""
        finally:
            await response.aclose()
        if _is_error(body):
            return httpx2.Response(
                response.status_code,
                headers={"content-type": "application/json"},
                content=body,
                request=request,
            )
        return _fault(
            request, response.status_code, f"HTTP {response.status_code} {response.reason_phrase}"
        )


def _fault(request: httpx2.Request, status: int, message: str) -> httpx2.Response:
    error = ErrorData(code=CONNECTION_CLOSED, message=message.strip(), data=UNREACHED)
    body = JSONRPCError(jsonrpc="2.0", id=None, error=error).model_dump(mode="json", by_alias=True)
    return httpx2.Response(status, json=body, request=request)


def _is_error(body: bytes) -> bool:
    try:
        return isinstance(jsonrpc_message_adapter.validate_json(body, by_name=False), JSONRPCError)
    except ValueError:
        return False
