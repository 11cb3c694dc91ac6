"""How much of what was recorded has arrived, and the one line that says what has not."""

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Final, final


@final
class ItemDelivery:
    """Counts spans, or log events, from their end to their arrival. Thread-safe.

    Args:
        room: items that may wait; one that comes while as many wait is dropped. Bounded here and
            not by the queue of the SDK, which drops without telling.
    """

    def __init__(self, room: int) -> None:
        self._room: Final = room
        self._lock: Final = Lock()
        self._waiting = 0
        self._under_way = 0
        self._lost = 0

    def admit(self) -> bool:
        """Return whether one more may wait for export; one that may not is lost."""
        with self._lock:
            admitted = self._waiting < self._room
            if admitted:
                self._waiting += 1
            else:
                self._lost += 1
            return admitted

    def sent(self, items: int) -> None:
        """Note that an attempt to export waiting items has begun."""
        with self._lock:
            self._waiting -= items
            self._under_way += items

    def settled(self, items: int, *, arrived: bool) -> None:
        """Note how the attempt has ended."""
        with self._lock:
            self._under_way -= items
            self._lost += 0 if arrived else items

    def lost(self) -> int:
        """Return how many are known not to have arrived."""
        with self._lock:
            return self._lost

    def missing(self) -> int:
        """Return how many have not arrived, those included that still wait."""
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


def undelivered(losses: Iterable[tuple[str, str]]) -> Sequence[str]:
    """Return what is said of telemetry that did not arrive: a line, or nothing.

    Args:
        losses: pairs of what was lost (`3 spans`) and the host that it was meant for.
    """
    lost_at: dict[str, list[str]] = {}
    for what, host in losses:
        lost_at.setdefault(host, []).append(what)
    clauses = [
        f"{_listed(what)} could not be delivered to {host}" for host, what in lost_at.items()
    ]
    return [f"telemetry: {', and '.join(clauses)}"] if clauses else []


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural where it is one."""
    return f"{number} {noun if number == 1 else f'{noun}s'}"


def _listed(items: Sequence[str]) -> str:
    """Return `a`, `a and b` or `a, b and c`."""
    *others, last = items
    return f"{', '.join(others)} and {last}" if others else last
