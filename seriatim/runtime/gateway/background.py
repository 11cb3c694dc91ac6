"""Tasks that run beside a piece of work."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup


@asynccontextmanager
async def background() -> AsyncIterator[TaskGroup]:
    """Run tasks beside the body, whose exception leaves as it is: a task group would wrap it.

    The tasks have to end when the body does; whoever opens this sees to it.
    """
    raised: list[Exception] = []
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except Exception as error:  # noqa: BLE001  raised below
            raised.append(error)
    for each in raised:
        raise each
