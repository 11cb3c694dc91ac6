"""How `run` and `gateway` start a run that is settled, and end it in an orderly way."""

import math
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final, TypeVar, final

import anyio

from interceptors import AgentId, RunId
from seriatim.cli.lines import escaped
from seriatim.cli.news import tell
from seriatim.cli.signals import ENDINGS, Divert, Ended, ours, until_signalled
from seriatim.cli.voice import FAILED, stop
from seriatim.runtime.plugins import InterceptorError
from seriatim.runtime.run import Observers, Run, open_run
from seriatim.stores.errors import AuditStoreError
from seriatim.stores.places import SqlitePlace, open_audit
from seriatim.topology import Topology, Workspace
from telemetry import Telemetry, observe_audit_queue

LOOP: Final = {"use_uvloop": find_spec("uvloop") is not None}
"""The event loop: uvloop where it is installed, which the extra `fast` does."""

_Result = TypeVar("_Result")


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """All that is settled of a run before anything starts.

    Attributes:
        agents: those that are driven; only their servers are started.
        max_calls: calls that the run may make; `NO_LIMIT` for any number.
        patience: seconds after which the run begins although servers have not answered yet.
        interactive: whether clients make the calls, who may be able to answer what servers ask.
    """

    run: RunId
    workspace: Workspace
    topology: Topology
    agents: tuple[AgentId, ...]
    place: SqlitePlace
    max_calls: int
    patience: float = math.inf
    interactive: bool = False


class StartError(Exception):
    """A run cannot start; the message says why.

    Attributes:
        hint: the way out.
    """

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.hint: Final = hint


def carry_out(
    work: Callable[[], Awaitable[_Result]],
    divert: Divert = ours,
    endings: Collection[signal.Signals] = ENDINGS,
) -> Ended[_Result]:
    """Run `work` until its end or a signal, see `until_signalled`; leaves on a `StartError`."""
    try:
        return anyio.run(until_signalled, work, divert, endings, backend_options=LOOP)
    except StartError as error:
        stop(str(error), hint=error.hint, code=FAILED)


@asynccontextmanager
async def started(plan: Plan, telemetry: Telemetry) -> AsyncIterator[Run]:
    """Open the audit log and the run, and say what becomes of its servers.

    Raises:
        StartError: when the log cannot be used, or a user's interceptor cannot be had.
    """
    try:
        async with open_audit(plan.place) as sink:
            observe_audit_queue(sink.waiting, telemetry.meter_provider)
            async with open_run(
                plan.run,
                plan.workspace,
                plan.topology,
                plan.agents,
                audit=sink,
                max_calls=plan.max_calls,
                environ=os.environ,
                observers=Observers(telemetry, servers=tell),
                patience=plan.patience,
                interactive=plan.interactive,
            ) as run:
                yield run
    except InterceptorError as error:
        problem = escaped(str(error))
        raise StartError(problem, "correct `interceptors` in the settings") from error
    except AuditStoreError as error:
        raise StartError(error.message, error.hint) from error
