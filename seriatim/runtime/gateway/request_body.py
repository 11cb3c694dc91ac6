"""The body of an HTTP request, bounded in size and in the time that it takes to arrive."""

from collections.abc import Sequence

import anyio
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope


class BodyTooLargeError(Exception):
    """A body is, or says that it is, larger than it may be."""


class BodyTooSlowError(Exception):
    """A body did not arrive in the time that it has, or its sender has left."""


async def read_body(scope: Scope, receive: Receive, limit: int, seconds: float) -> bytes:
    """Return the whole body of a request.

    Args:
        limit: the bytes that it may have.
        seconds: in which it has to be there.

    Raises:
        BodyTooLargeError: when it is larger; nothing is read of one that says so at once.
        BodyTooSlowError: when it is late, or will never be complete.
    """
    declared = Headers(scope=scope).get("content-length", "")
    if declared.isdecimal() and (len(declared) > len(str(limit)) or int(declared) > limit):
        raise BodyTooLargeError
    chunks: list[bytes] = []
    size = 0
    with anyio.move_on_after(seconds):
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise BodyTooSlowError
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if size > limit:
                raise BodyTooLargeError
            if not message.get("more_body", False):
                return b"".join(chunks)
    raise BodyTooSlowError


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives a body that was read, and then whatever comes after it."""
    messages: Sequence[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    pending = iter(messages)

    async def again() -> Message:
        for message in pending:
            return message
        return await receive()

    return again
