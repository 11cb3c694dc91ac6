"""Work that ends in an orderly way when the process is told to."""

import signal
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar, final

import anyio

_Result = TypeVar("_Result")


@final
@dataclass(frozen=True, slots=True)
class Done(Generic[_Result]):
    """The work came to its end."""

    result: _Result


@final
@dataclass(frozen=True, slots=True)
class Interrupted:
    """A signal ended the work, which was cancelled and cleaned up after.

    Attributes:
        exit_code: 128 and the signal's number, as shells have it.
    """

    exit_code: int


Ended: TypeAlias = Done[_Result] | Interrupted


ENDINGS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, the request to end, and the terminal that is closed."""


Divert: TypeAlias = Callable[[signal.Signals], bool]
"""Takes a signal that is meant for another, or returns `False`: then it ends the work."""


def ours(_number: signal.Signals) -> bool:
    """Divert no signal."""
    return False


async def until_signalled(
    work: Callable[[], Awaitable[_Result]],
    divert: Divert = ours,
    endings: Collection[signal.Signals] = ENDINGS,
) -> Ended[_Result]:
    """Do the work, and cancel it on one of `endings`; further signals do not hurry it."""
    results: list[_Result] = []
    errors: list[Exception] = []
    received: list[signal.Signals] = []
    with anyio.open_signal_receiver(*endings) as signals:
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                async for number in signals:
                    if not divert(number):
                        received.append(number)
                        tasks.cancel_scope.cancel()

            tasks.start_soon(watch)
            try:
                results.append(await work())
            except Exception as error:  # noqa: BLE001  raised below: a task group would wrap it
                errors.append(error)
            tasks.cancel_scope.cancel()
    for failure in errors:
        raise failure
    for result in results:
        return Done(result)
    return Interrupted(128 + received[0])
