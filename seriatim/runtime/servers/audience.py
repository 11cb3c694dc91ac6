"""Who is told when the tools of a run's servers are others than they were."""

from typing import Final, Protocol, final
from weakref import WeakSet

import anyio

TELLING: Final = 1.0
"""Seconds in which everybody is told; whoever does not listen for longer is not waited for."""


class Listener(Protocol):
    """Told that tools changed."""

    async def tools_changed(self) -> None:
        """Take note; may be cancelled, and raises nothing."""
        ...


@final
class Audience:
    """Holds its listeners weakly: they leave by being forgotten."""

    def __init__(self) -> None:
        self._listeners: Final[WeakSet[Listener]] = WeakSet()

    def __len__(self) -> int:
        return len(self._listeners)

    def join(self, listener: Listener) -> None:
        """Tell a listener from here on."""
        self._listeners.add(listener)

    async def tell(self) -> None:
        """Tell all of them, side by side."""
        with anyio.move_on_after(TELLING):
            async with anyio.create_task_group() as tasks:
                for listener in list(self._listeners):
                    tasks.start_soon(listener.tools_changed)
