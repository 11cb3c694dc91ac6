"""One HTTP request and its answer: who is still there, and what has gone out."""

from typing import Final

from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

_KEY: Final = "seriatim.exchange"


class Exchange:
    """Watches what passes between a client and the SDK for one request.

    Attributes:
        begun: whether the head of the answer has gone out.
        complete: whether all of the answer has gone out.
        gone: whether the client left before that.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope: Final[Scope] = {**scope, _KEY: self}
        self._receive: Final = receive
        self._send: Final = send
        self.begun = False
        self.complete = False
        self.gone = False

    async def receive(self) -> Message:
        """Wait for what the client sends, or for its leave."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.gone = not self.complete
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the answer."""
        await self._send(message)
        self.begun = True
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.complete = True


def is_awaited(request: Request) -> bool:
    """Return whether the client of a request is still there for its answer, as far as is known."""
    match request.scope.get(_KEY):
        case Exchange(gone=gone):
            return not gone
        case _:
            return True
