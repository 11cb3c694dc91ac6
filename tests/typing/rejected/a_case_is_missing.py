from typing import assert_never

from interceptors import Completed, Outcome, Refused


def word(outcome: Outcome) -> str:
    match outcome:
        case Completed():
            return "completed"
        case Refused():
            return "refused"
        case _:
            assert_never(outcome)  # expect: arg-type
