"""JSON as people write it into configuration files: with comments, and commas too many."""

import json
from typing import Any

import json5


def read_object(text: str) -> dict[str, Any]:
    """Return the object that a text holds.

    Raises:
        ValueError: when it holds none; says what is wrong, and on which line.
    """
    try:
        # A hundred times as fast as the other, and most files are plain JSON.
        value = json.loads(text)
    except ValueError:
        value = json5.loads(text)
    if not isinstance(value, dict):
        raise ValueError("it holds no object")
    return value
