"""The door through which one harness reaches the tools of its agent, open while it runs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, final

import anyio

from seriatim.runtime.gateway import gateway_for_tokens
from seriatim.runtime.http import Address, http_app, listen, serve_http, url_of
from seriatim.runtime.registrations import Registration, Registrations

ANY_PORT: Final = Address("127.0.0.1", 0)


@final
@dataclass(frozen=True, slots=True)
class Door:
    """Where a harness finds the gateway, and the token that lets it in."""

    url: str
    token: str = field(repr=False)


@asynccontextmanager
async def open_door(registration: Registration) -> AsyncIterator[Door]:
    """Serve a registration over HTTP on a free port of this machine, until leaving.

    On leaving, calls in flight have two seconds to finish; then the token opens nothing.

    Raises:
        OSError: when there is no port to listen on.
    """
    registrations = Registrations()
    token = registrations.add(registration)
    raised: list[Exception] = []
    with listen(ANY_PORT) as listener:
        app = http_app(gateway_for_tokens(registrations), registrations, ANY_PORT)
        ready = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve_http, app, listener, ready)
            await ready.wait()
            try:
                yield Door(url_of(ANY_PORT, listener), token)
            except Exception as error:  # noqa: BLE001  raised below: a task group would wrap it
                raised.append(error)
            tasks.cancel_scope.cancel()
    for each in raised:
        raise each
