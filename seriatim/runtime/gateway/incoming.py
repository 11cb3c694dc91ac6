"""JSON-RPC as it comes: each text is a message, or is answered, so that nobody waits for ever."""

import json
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError


@final
@dataclass(frozen=True, slots=True)
class Message:
    """The text is a message."""

    message: JSONRPCMessage


@final
@dataclass(frozen=True, slots=True)
class Reply:
    """The text is none, but was meant as a request: this is the answer to it."""

    message: JSONRPCError


@final
@dataclass(frozen=True, slots=True)
class BrokenAnswer:
    """The text is none, but was meant as the answer to a request of ours, which has failed then."""

    message: JSONRPCError


@final
@dataclass(frozen=True, slots=True)
class Nothing:
    """The text is none, and nobody waits for anything."""


Meaning: TypeAlias = Message | Reply | BrokenAnswer | Nothing
"""What a text means to those who wait."""

_NO_MESSAGE: Final = "this is no JSON-RPC message"


def meaning_of(text: bytes) -> Meaning:
    """Return what a text means, which ought to be UTF-8."""
    try:
        message = jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError as fault:
        return _repaired(text, fault)
    # A request whose id is none reads as a notification to the SDK, which answers nothing.
    if isinstance(message, JSONRPCNotification) and b'"id"' in text and "id" in json.loads(text):
        return Reply(_error(None, INVALID_REQUEST, "the id of a request is a text or an integer"))
    return Message(message)


def _repaired(text: bytes, fault: ValidationError) -> Meaning:
    first = fault.errors(include_url=False, include_input=False)[0]
    unreadable = first["type"] == "json_invalid"
    code, why = (PARSE_ERROR, first["msg"]) if unreadable else (INVALID_REQUEST, _NO_MESSAGE)
    match _leniently(text):
        case {"method": _, "id": id_}:
            return Reply(_error(_writable(id_), code, why))
        case {"method": _}:
            return Nothing()
        case {"id": int() | str() as id_} if not isinstance(id_, bool):
            return BrokenAnswer(_error(id_, code, why))
        case _:
            return Reply(_error(None, code, why))


def _leniently(text: bytes) -> object:
    """Return what a text holds, as far as it can be made out: it need not be what was meant."""
    try:
        value: Any = json.loads(text, parse_int=_any_size)
    except (ValueError, RecursionError):
        return None
    return value


def _any_size(digits: str) -> int | None:
    """Return an integer, or nothing for one of more digits than Python converts."""
    try:
        return int(digits)
    except ValueError:
        return None


def _writable(id_: object) -> RequestId | None:
    """Return the id of a request if an answer can bear it."""
    match id_:
        case bool():
            return None
        case int():
            return id_
        case str():
            return None if any("\ud800" <= character <= "\udfff" for character in id_) else id_
        case _:
            return None


def _error(id_: RequestId | None, code: int, why: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=id_, error=ErrorData(code=code, message=why))
