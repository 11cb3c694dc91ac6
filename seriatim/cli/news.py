"""What becomes of a run's servers, told as it happens: one line a change, on stderr."""

from contextlib import suppress
from typing import assert_never

from seriatim.cli.lines import escaped
from seriatim.cli.voice import say
from seriatim.runtime.servers.news import (
    ServerBack,
    ServerLost,
    ServerNews,
    ServersAwaited,
    ToolsListed,
)


async def tell(news: ServerNews) -> None:
    """Print news of a server."""
    # Whoever read the stream may have left; the run goes on.
    with suppress(OSError):
        for line in _lines(news):
            say(line)


def _lines(news: ServerNews) -> list[str]:
    match news:
        case ServersAwaited(servers):
            return [f"waiting for server {', '.join(servers)}"]
        case ServerLost(server, detail, retried):
            way = "; it is tried again in the background" if retried else ""
            return [f"server {server} is not available: {escaped(detail)}{way}"]
        case ServerBack(server):
            return [f"server {server} is available again"]
        case ToolsListed(server, changes):
            return [
                f"warning: tool {escaped(change.tool)} of server {server} {change.what}"
                for change in changes
            ]
        case _:
            assert_never(news)
