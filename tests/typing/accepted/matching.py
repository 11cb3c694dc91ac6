"""A match that names every case of the outcomes needs no other."""

from typing import assert_never

from interceptors import Completed, Failed, Outcome, Refused


def word(outcome: Outcome) -> str:
    match outcome:
        case Completed():
            return "completed"
        case Refused():
            return "refused"
        case Failed():
            return "failed"
        case _:
            assert_never(outcome)
