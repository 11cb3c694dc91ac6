"""How much of what was recorded has arrived, and the one line that says what has not."""

from collections.abc import Sequence
from threading import Lock
from typing import Final, final


@final
class SpanDelivery:
    """Counts spans from their end to their arrival. Thread-safe.

    Args:
        room: spans that may wait; one that ends while as many wait is dropped. Bounded here and not
            by the queue of the SDK, which drops without telling.
    """

    def __init__(self, room: int) -> None:
        self._room: Final = room
        self._lock: Final = Lock()
        self._waiting = 0
        self._under_way = 0
        self._lost = 0

    def admit(self) -> bool:
        """Return whether a span that has ended may wait for export; one that may not is lost."""
        with self._lock:
            admitted = self._waiting < self._room
            if admitted:
                self._waiting += 1
            else:
                self._lost += 1
            return admitted

    def sent(self, spans: int) -> None:
        """Note that an attempt to export waiting spans has begun."""
        with self._lock:
            self._waiting -= spans
            self._under_way += spans

    def settled(self, spans: int, *, arrived: bool) -> None:
        """Note how the attempt has ended."""
        with self._lock:
            self._under_way -= spans
            self._lost += 0 if arrived else spans

    def lost(self) -> int:
        """Return how many spans are known not to have arrived."""
        with self._lock:
            return self._lost

    def missing(self) -> int:
        """Return how many spans have not arrived, those included that still wait."""
        with self._lock:
            return self._lost + self._waiting + self._under_way


@final
class MetricDelivery:
    """Remembers whether the last export of metrics arrived: they are sums, so it tells all."""

    def __init__(self) -> None:
        self._arrived = True

    def sent(self) -> None:
        """Note that an attempt to export has begun."""
        self._arrived = False

    def settled(self, *, arrived: bool) -> None:
        """Note how the attempt has ended."""
        self._arrived = arrived

    def missing(self) -> bool:
        """Return whether the latest sums have not arrived."""
        return not self._arrived


def undelivered(spans: int, spans_host: str, metrics: bool, metrics_host: str) -> Sequence[str]:
    """Return what is said of telemetry that did not arrive: a line, or nothing."""
    losses: dict[str, list[str]] = {}
    if spans:
        losses.setdefault(spans_host, []).append(f"{spans} {'span' if spans == 1 else 'spans'}")
    if metrics:
        losses.setdefault(metrics_host, []).append("the latest metrics")
    clauses = [
        f"{' and '.join(what)} could not be delivered to {host}" for host, what in losses.items()
    ]
    return [f"telemetry: {', and '.join(clauses)}"] if clauses else []
