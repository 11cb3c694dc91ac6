"""HTTP connections that bring no request: bounded in number, and in the time that they have.

uvicorn has no limit for either: it answers 503 to a request beyond `limit_concurrency`, but a
connection that never gets to the end of a request's head, or trickles a body that nobody waits for,
stays for ever.
"""

import asyncio
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS: Final = 900
"""Open at once; below the 1,024 files that most systems let a process have."""
HEAD_SECONDS: Final = 10.0
"""In which the head of a request has to arrive, counted from the connection or its first byte."""
IDLE_SECONDS: Final = 75
"""That a connection may rest between two requests; as long as common proxies keep theirs."""


class PatientProtocol(H11Protocol):
    """Closes a connection on which no request is being served, unless one begins in time."""

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
        else:
            self._wait_for_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._patience is None and not self.transport.is_closing():
            self._wait_for_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_request(self) -> None:
        self._patience = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
