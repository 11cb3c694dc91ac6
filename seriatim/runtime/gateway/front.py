"""The gateway over HTTP: who is let in, and to what."""

import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, final

import anyio
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from seriatim.runtime.gateway.admin import PATH as ADMIN_PATH
from seriatim.runtime.gateway.admin import AdminApi, AdminKey
from seriatim.runtime.gateway.background import background
from seriatim.runtime.gateway.bearer import (
    NO_TOKEN,
    TurnedAway,
    Verify,
    challenge,
    token_of,
    verify_by,
)
from seriatim.runtime.gateway.http import PATH, Address, guard_of, serve_http, url_of
from seriatim.runtime.gateway.issued import verify_all
from seriatim.runtime.gateway.register import FOREVER, Clock, Register, open_register
from seriatim.runtime.gateway.resource import Resource
from seriatim.runtime.gateway.tls import Encryption
from seriatim.runtime.run import Run


@final
@dataclass(frozen=True, slots=True)
class Front:
    """Where a gateway listens, and what it asks of whoever comes.

    Attributes:
        listener: a listening socket; closed when serving ends.
        admin: what opens the admin API, in a tuple of one; there is no API without it.
        lifetime: seconds that a registration lives unless its maker says otherwise, or `FOREVER`.
    """

    address: Address
    listener: socket.socket
    encryption: Encryption
    admin: tuple[AdminKey, ...] = ()
    lifetime: float = FOREVER

    @property
    def url(self) -> str:
        """Where agents reach the gateway."""
        return url_of(self.address, self.listener, self.encryption)

    @property
    def admin_url(self) -> str:
        """Where the admin API is, if there is one."""
        return self.url.removesuffix(PATH) + ADMIN_PATH


@asynccontextmanager
async def serving(front: Front, run: Run, now: Clock = time.time) -> AsyncIterator[Register]:
    """Answer requests until left; what is in flight then has a short time to finish."""
    async with open_register(run, now) as register, background() as tasks:
        ready = anyio.Event()
        app = _app(front, run, register)
        tasks.start_soon(serve_http, app, front.listener, front.encryption, ready)
        try:
            await ready.wait()
            yield register
        finally:
            tasks.cancel_scope.cancel()


def _app(front: Front, run: Run, register: Register) -> Starlette:
    """Return the application: the agents' endpoint, and what stands beside it."""
    auths = run.workspace.settings.auth
    own = verify_by(register)
    verify = verify_all(auths, run.workspace.directory, register, own) if auths else own
    resources = tuple(Resource.of(auth, front.url) for auth in auths)
    metadata = next((resource.metadata_url for resource in resources), "")
    routes: list[BaseRoute] = [Route(PATH, endpoint=_AgentsEndpoint(verify, metadata))]
    for resource in resources:
        routes += resource.routes()
    for key in front.admin:
        routes += AdminApi(key, register, front.url, front.lifetime).routes()
    known = tuple(resource.host for resource in resources)
    guard = guard_of(front.address, front.encryption, known)
    return Starlette(routes=routes, middleware=[Middleware(_Guard, guard)])


class _AgentsEndpoint:
    """Hands each request to the door of the registration behind its bearer token."""

    def __init__(self, verify: Verify, metadata: str) -> None:
        self._verify: Final = verify
        self._metadata: Final = metadata

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        token = token_of(scope)
        found = await self._verify(token) if token else NO_TOKEN
        if isinstance(found, TurnedAway):
            await challenge(found, self._metadata)(scope, receive, send)
        else:
            await found.door.serve(scope, receive, send)


class _Guard:
    """Turns away what a web page sends that leads a name of its own here."""

    def __init__(self, app: ASGIApp, settings: TransportSecuritySettings) -> None:
        self._app: Final = app
        self._security: Final = TransportSecurityMiddleware(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = None
        if scope["type"] == "http":
            answer = await self._security.validate_request(Request(scope))
        await (answer or self._app)(scope, receive, send)
