"""The gateway over streamable HTTP: who is let in, on which socket, and until when."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, final

import anyio
import uvicorn
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.applications import Starlette

from seriatim.runtime.gateway import Gateway
from seriatim.runtime.registrations import Registrations

PATH: Final = "/mcp"
LARGEST_REQUEST: Final = 64 * 1024 * 1024
"""Bytes of a request body beyond which it is answered with 413."""
GRACE: Final = 2
"""Seconds that calls in flight have to finish when the gateway stops."""


@final
@dataclass(frozen=True, slots=True)
class Address:
    """Where the gateway listens, as it was asked for; port 0 is any free one."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def is_wildcard(self) -> bool:
        """Whether every name and address of this machine leads to it."""
        try:
            return ip_address(self.host).is_unspecified
        except ValueError:
            return False


def listen(address: Address) -> socket.socket:
    """Return a listening socket.

    Raises:
        OSError: when the host is unknown, or the port is taken or not ours to use.
    """
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    family, _, _, _, place = found[0]
    listener = socket.create_server(place[:2], family=family)
    # Says that it speaks TCP, which asyncio wants to know before it sets TCP_NODELAY: without, the
    # second packet of an answer waits until the client has acknowledged the first, for 40 ms.
    return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, listener.detach())


def url_of(address: Address, listener: socket.socket) -> str:
    """Return the URL by which a client on this machine reaches the gateway."""
    loopback = "::1" if listener.family is socket.AF_INET6 else "127.0.0.1"
    host = loopback if address.is_wildcard else address.host
    port = listener.getsockname()[1]
    return f"http://{_bracketed(host)}:{port}{PATH}"


def http_app(gateway: Gateway, registrations: Registrations, address: Address) -> Starlette:
    """Return the ASGI application of a gateway; a request without a valid token is answered 401."""
    return gateway.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=LARGEST_REQUEST,
        transport_security=_guard(address),
        token_verifier=registrations,
        # Asks for a bearer token and offers no authorization server: tokens are handed out by
        # whoever starts the gateway. The SDK wants an issuer all the same.
        auth=AuthSettings(issuer_url=AnyHttpUrl("http://127.0.0.1"), resource_server_url=None),
    )


async def serve_http(app: Starlette, listener: socket.socket, ready: anyio.Event) -> None:
    """Serve until cancelled; then let calls finish for two seconds, and cancel the rest.

    Args:
        ready: set when requests are answered.
    """
    # Without access log and log set-up: a request's line and headers are nobody's business, and
    # stdout is not uvicorn's to write to.
    config = uvicorn.Config(
        app,
        access_log=False,
        log_config=None,
        log_level="critical",
        lifespan="on",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=GRACE,
    )
    server = _Server(config, ready)

    async def stop_when_cancelled() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            server.should_exit = True

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_when_cancelled)
        # Shielded: uvicorn stops in good order when it is told to, and leaves its tasks behind when
        # it is cancelled.
        with anyio.CancelScope(shield=True):
            await server.serve([listener])
        tasks.cancel_scope.cancel()


class _Server(uvicorn.Server):
    """Tells when it is ready, and leaves signals to whoever started it.

    uvicorn raises a signal again once it has stopped, which would end the process before the MCP
    servers and the audit log are closed.
    """

    def __init__(self, config: uvicorn.Config, ready: anyio.Event) -> None:
        super().__init__(config)
        self._ready: Final = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _guard(address: Address) -> TransportSecuritySettings:
    """Return which `Host` and `Origin` are let in.

    So that no web page can reach us by a name of its own that leads here. On a wildcard address any
    `Host` may be right, and the token alone decides.
    """
    names = dict.fromkeys(["127.0.0.1", "localhost", "[::1]", _bracketed(address.host)])
    # A client leaves out the port where it is 80.
    hosts = [host for name in names for host in (name, f"{name}:*")]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=not address.is_wildcard,
        allowed_hosts=hosts,
        allowed_origins=[f"http://{host}" for host in hosts],
    )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
