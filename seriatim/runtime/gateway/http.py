"""The gateway's HTTP server: on which socket, under which names, and until when."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, assert_never, final

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette

from seriatim.runtime.gateway.half_open import IDLE_SECONDS, PatientProtocol
from seriatim.runtime.gateway.tls import Encryption, Plain, Tls

PATH: Final = "/mcp"
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


def url_of(address: Address, listener: socket.socket, encryption: Encryption) -> str:
    """Return the URL by which a client on this machine reaches the gateway."""
    return url_at(Address(address.host, listener.getsockname()[1]), encryption)


def url_at(address: Address, encryption: Encryption) -> str:
    """Return the URL by which a client on this machine reaches a gateway at an address."""
    loopback = "::1" if ":" in address.host else "127.0.0.1"
    host = loopback if address.is_wildcard else address.host
    return f"{encryption.scheme}://{_bracketed(host)}:{address.port}{PATH}"


def guard_of(
    address: Address, encryption: Encryption, known: tuple[str, ...] = ()
) -> TransportSecuritySettings:
    """Return which `Host` and `Origin` are let in; `known` are further names that lead here.

    So that no web page can reach us by a name of its own that leads here. On a wildcard address any
    `Host` may be right, and the token alone decides.
    """
    names = dict.fromkeys(["127.0.0.1", "localhost", "[::1]", _bracketed(address.host), *known])
    # A client leaves out the port where it is that of the scheme.
    hosts = [host for name in names for host in (name, f"{name}:*")]
    # Before whatever else leads here there may be a proxy that encrypts.
    schemes = dict.fromkeys([encryption.scheme, *(["https"] if known else [])])
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=not address.is_wildcard,
        allowed_hosts=hosts,
        allowed_origins=[f"{scheme}://{host}" for host in hosts for scheme in schemes],
    )


async def serve_http(
    app: Starlette, listener: socket.socket, encryption: Encryption, ready: anyio.Event
) -> None:
    """Serve until cancelled; then let calls finish for two seconds, and cancel the rest.

    Args:
        ready: set when requests are answered.
    """
    # Without access log and log set-up: a request's line and headers are nobody's business, and
    # stdout is not uvicorn's to write to.
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        access_log=False,
        log_config=None,
        log_level="critical",
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=GRACE,
    )
    match encryption:
        case Tls(context):
            config.ssl_context_factory = lambda _config, _default: context
        case Plain():
            pass
        case _:
            assert_never(encryption)
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


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
