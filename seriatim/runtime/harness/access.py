"""The access that one harness has to the tools of its agent, for as long as it runs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, final

from interceptors import AgentId
from seriatim.runtime.gateway.front import Front, serving
from seriatim.runtime.gateway.http import Address, listen
from seriatim.runtime.gateway.tls import Plain
from seriatim.runtime.run import Run

ANY_PORT: Final = Address("127.0.0.1", 0)


@final
@dataclass(frozen=True, slots=True)
class Access:
    """Where a harness finds the gateway, and the token that lets it in."""

    url: str
    token: str = field(repr=False)


@asynccontextmanager
async def open_access(run: Run, agent: AgentId) -> AsyncIterator[Access]:
    """Serve an agent over HTTP on a free port of this machine, until leaving.

    On leaving, calls in flight have two seconds to finish; then the token opens nothing, and the
    ledger has forgotten what the agent has seen: the next harness has seen nothing of it.

    Raises:
        OSError: when there is no port to listen on.
        InterceptorError: when a user's interceptor cannot be had.
    """
    with listen(ANY_PORT) as listener:
        front = Front(ANY_PORT, listener, Plain())
        async with serving(front, run) as register:
            _, token = await register.issue(run.id, agent, front.lifetime)
            yield Access(front.url, token)
