"""Registrations: who may speak to the gateway, and in whose name."""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

from mcp.server.auth.provider import AccessToken
from opentelemetry.context import Context

from interceptors import AgentId, Via, new_id
from seriatim.runtime.assembly import assemble
from seriatim.runtime.dispatch import GovernedAgent
from seriatim.runtime.passage import Passage, passage
from seriatim.runtime.run import Run
from seriatim.runtime.session import ListedTool
from seriatim.runtime.tools import advertised_tools

TOKEN_BYTES: Final = 32
"""Random bytes of a token: 256 bits."""


@final
@dataclass(frozen=True, slots=True)
class Registration:
    """One agent of one run, as the gateway knows it.

    Attributes:
        id: tells this registration from every other; no secret.
        tools: what the agent is shown.
        passage: its way to resources and prompts.
        context: the trace context of calls whose caller sends none.
    """

    agent: GovernedAgent
    tools: tuple[ListedTool, ...]
    passage: Passage
    context: Context = field(repr=False)
    id: str = field(default_factory=new_id)


def registration(run: Run, agent: AgentId) -> Registration:
    """Return a new registration of one of a run's agents, under a trace of its own.

    Raises:
        InterceptorError: when a user's interceptor cannot be had.
    """
    definition = run.topology.agents[agent]
    governed = assemble(run, definition, Via.GATEWAY)
    return Registration(
        agent=governed,
        tools=advertised_tools(run, definition),
        passage=passage(run, definition),
        context=run.spans.registration(governed.scope),
    )


@final
@dataclass(frozen=True, slots=True)
class _Entry:
    digest: bytes
    registration: Registration


class Registrations:
    """The registrations of a gateway, each behind a bearer token of its own.

    Keeps no token, only what tells a right one from a wrong one: nothing here can leak one into a
    log, a trace or a memory dump. Satisfies the SDK's `TokenVerifier`.
    """

    def __init__(self) -> None:
        self._by_digest: Final[dict[bytes, _Entry]] = {}
        self._by_id: Final[dict[str, Registration]] = {}
        self._schemas: Final[dict[str, Mapping[str, Any]]] = {}

    def add(self, registration: Registration) -> str:
        """Return the token of a new registration; nobody can ask for it a second time."""
        token = secrets.token_urlsafe(TOKEN_BYTES)
        digest = _digest(token)
        self._by_digest[digest] = _Entry(digest, registration)
        self._by_id[registration.id] = registration
        self._schemas.update((tool.name, tool.input_schema) for tool in registration.tools)
        return token

    async def verify_token(self, token: str) -> AccessToken | None:
        digest = _digest(token)
        entry = self._by_digest.get(digest)
        if entry is None or not hmac.compare_digest(entry.digest, digest):
            return None
        registration = entry.registration
        # Without the token: the SDK hands this object about, and it has a `repr`. The SDK binds a
        # session to `client_id` and `subject`, so no other registration can enter it.
        return AccessToken(
            token=registration.id,
            client_id=registration.id,
            scopes=[],
            subject=registration.agent.scope.agent,
        )

    def behind(self, token: AccessToken) -> Registration:
        """Return the registration for which `verify_token` stood.

        Raises:
            KeyError: when it is no longer registered.
        """
        return self._by_id[token.client_id]

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        """Return the input schema that tools of this name have, whoever asks.

        The agents of a gateway share one workspace, in which a skill id means one tool.
        """
        return self._schemas.get(name)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
