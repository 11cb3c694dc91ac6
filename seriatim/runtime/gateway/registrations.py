"""Registrations: one agent of one run, as the gateway serves it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, final

from mcp import MCPError
from opentelemetry.context import Context

from interceptors import AgentId, Via, new_id
from seriatim.runtime.assembly import assemble
from seriatim.runtime.dispatch import GovernedAgent
from seriatim.runtime.gateway.advertising import Advertisement
from seriatim.runtime.gateway.passage import Passage, passage
from seriatim.runtime.run import Run
from seriatim.runtime.servers.session import ListedTool

BUSY: Final = -32029
"""JSON-RPC error code of a call beyond those that may be in flight (as 429 is to HTTP)."""


class CallsInFlight:
    """Counts the calls of one registration that have begun and not ended.

    Args:
        limit: how many there may be at once.
    """

    def __init__(self, limit: int) -> None:
        self._limit: Final = limit
        self._number = 0

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """Count a call until it has ended.

        Raises:
            MCPError: when as many as there may be are in flight.
        """
        if self._number >= self._limit:
            raise MCPError(
                BUSY,
                f"this agent has {self._limit} calls in flight, as many as it may; "
                "wait until one of them has ended, then call again",
            )
        self._number += 1
        try:
            yield
        finally:
            self._number -= 1


@final
@dataclass(frozen=True, slots=True)
class Registration:
    """One agent of one run, as the gateway knows it.

    Attributes:
        advertisement: what the agent is shown.
        passage: its way to resources and prompts.
        calls: its calls in flight.
        context: the trace context of calls whose caller sends none.
        id: tells this registration from every other; no secret.
    """

    agent: GovernedAgent
    advertisement: Advertisement = field(repr=False)
    passage: Passage
    calls: CallsInFlight = field(repr=False)
    context: Context = field(repr=False)
    id: str = field(default_factory=new_id)

    @property
    def tools(self) -> tuple[ListedTool, ...]:
        """What the agent is shown now."""
        return self.advertisement.tools


def registration(run: Run, agent: AgentId) -> Registration:
    """Return a new registration of one of a run's agents, under a trace of its own.

    Raises:
        InterceptorError: when a user's interceptor cannot be had.
    """
    definition = run.topology.agents[agent]
    governed = assemble(run, definition, Via.GATEWAY)
    advertisement = Advertisement(run.servers, definition.skills)
    run.audience.join(advertisement)
    return Registration(
        agent=governed,
        advertisement=advertisement,
        passage=passage(run, definition),
        calls=CallsInFlight(run.workspace.settings.gateway.calls_in_flight),
        context=run.spans.registration(governed.scope),
    )
