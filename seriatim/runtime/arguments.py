"""The arguments of a call as an executor received them, which may be no JSON object."""

import json
from collections.abc import Mapping
from typing import Never

from interceptors import BrokenArguments, JsonObject


def parsed_arguments(text: str) -> JsonObject | BrokenArguments:
    """Return the object that a text holds; what is none is kept as text."""
    try:
        # NaN and the infinities are Python's, not JSON's.
        value: object = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return BrokenArguments(text, "they are not valid JSON")
    if isinstance(value, dict):
        return value
    return BrokenArguments(text, f"they are {_kind(value)}")


def given_arguments(value: object) -> JsonObject | BrokenArguments:
    """Return a JSON value if it is an object; another one is kept as text."""
    if isinstance(value, Mapping):
        return value
    return BrokenArguments(json.dumps(value), f"they are {_kind(value)}")


def _refuse(constant: str) -> Never:
    raise ValueError(constant)


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return type(value).__name__
