"""Numbers that JSON has no word for, which its readers make of words like `1e400`."""

import math


def is_finite(value: object) -> bool:
    """Return whether every number in a JSON value can be written again.

    An infinite one would reach its reader as `null`, or spoil the whole message.
    """
    match value:
        case float():
            return math.isfinite(value)
        case dict():
            return all(map(is_finite, value.values()))
        case list():
            return all(map(is_finite, value))
        case _:
            return True
