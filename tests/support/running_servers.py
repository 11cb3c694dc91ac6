"""Servers that run while a test does, and calls to them past every gate."""

import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest

from interceptors import Completed, Failed, ServerUnavailableError, ToolRef, no_progress
from seriatim.runtime.servers.news import ServerNews, ToolsListed
from seriatim.runtime.servers.running import RunningServers, open_servers
from seriatim.topology.models import ServerDefinition

PLENTY = 30.0
"""Seconds for a start on a machine that does other things at the same time."""

ENVIRON = {"PATH": os.environ["PATH"]}


class Opener:
    """Opens servers in one workspace directory.

    Attributes:
        news: what was told of them.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.news: list[ServerNews] = []

    def __call__(
        self,
        *definitions: ServerDefinition,
        environ: Mapping[str, str] = ENVIRON,
        start_limit: float = PLENTY,
        patience: float = PLENTY,
        pin: bool = False,
    ) -> AbstractAsyncContextManager[RunningServers]:
        return open_servers(
            definitions,
            environ,
            self._directory,
            start_limit=start_limit,
            patience=patience,
            pin=pin,
            watch=self._watch,
        )

    async def _watch(self, news: ServerNews) -> None:
        # What a server lists first is no news to a test.
        if not isinstance(news, ToolsListed) or news.changes:
            self.news.append(news)


async def call(
    servers: RunningServers,
    tool: str,
    arguments: Mapping[str, Any] | None = None,
    server: str = "s",
) -> Completed | Failed:
    return await servers.call(ToolRef(server, tool), arguments or {}, {}, no_progress)


def text(outcome: Completed | Failed) -> str:
    assert isinstance(outcome, Completed)
    return str(outcome.result.content[0]["text"])


async def detail(call: Awaitable[object]) -> str:
    with pytest.raises(ServerUnavailableError) as caught:
        await call
    return caught.value.detail


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(PLENTY):
        while not condition():  # noqa: ASYNC110  files and processes have no events
            await anyio.sleep(0.01)
