"""How long to leave a server alone that does not answer, before it is tried again."""

from typing import Final

FIRST: Final = 0.25
"""Seconds before the first attempt after a loss: a crash is mostly over by then, and an agent that
read of it is about to try again."""
GROWTH: Final = 2.0
"""Factor from one pause to the next."""
LONGEST: Final = 30.0
"""Seconds between attempts at most, so that whoever repairs a server need not restart the run."""
WELL: Final = 60.0
"""Seconds of answering after which a loss counts as the first: shorter lives are one crash loop."""


class Pauses:
    """Counts the pauses between the attempts to reach one server."""

    def __init__(self) -> None:
        self._next = FIRST

    def after(self, answered: float) -> float:
        """Return how long to pause after an attempt.

        Args:
            answered: seconds for which the server answered; 0 for one that never did.
        """
        if answered >= WELL:
            self._next = FIRST
        pause, self._next = self._next, min(self._next * GROWTH, LONGEST)
        return pause
