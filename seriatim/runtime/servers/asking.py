"""What servers ask of those who call them (elicitation, sampling, roots), and who is asked.

A server of the handshake era asks by a request of its own, which does not say for which call. The
agents of a run share its connection, so a question goes to a client only when it can be nobody
else's.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
from mcp import MCPError
from mcp.client._transport import ReadStream, WriteStream
from mcp.shared.dispatcher import (
    CallOptions,
    DispatchContext,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    RequestId,
)

from interceptors import Dialogue, JsonObject

QUESTIONS: Final[Mapping[str, str]] = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
"""What a server may ask, by method, and the capability of a client that can answer it."""

ALL: Final[JsonObject] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
"""The capabilities of a gateway, whose clients may have any; in the handshake era it says so once,
before it has clients."""

TELLING: Final = 2
"""As many clients as it takes not to know which of them is meant."""
MOST_QUESTIONS: Final = 32
"""Questions of one call that may be open at once; a person answers them one by one."""

SPOKEN_FOR: Final = "seriatim/capabilities"
"""The `_meta` key under which a call carries its caller's capabilities as far as the dispatcher."""


@dataclass(frozen=True, slots=True)
class _UnderWay:
    dialogue: Dialogue
    questions: set[anyio.CancelScope] = field(default_factory=set)


class AskingDispatcher(JSONRPCDispatcher[TransportContext]):
    """The SDK's dispatcher, which takes a server's questions to whoever they are for.

    Args:
        interactive: whether those who make calls may be able to answer.
    """

    def __init__(
        self,
        incoming: ReadStream[SessionMessage | Exception],
        outgoing: WriteStream[SessionMessage],
        *,
        interactive: bool,
    ) -> None:
        super().__init__(incoming, outgoing)
        self._interactive: Final = interactive
        self._under_way: Final[list[_UnderWay]] = []
        # Who gave up a call, two at most: its server may not have noticed, and ask on.
        self._gave_up: Final[set[str]] = set()

    @contextmanager
    def during(self, dialogue: Dialogue) -> Iterator[None]:
        """Hold a call to be under way; questions that are still open at its end are withdrawn."""
        call = _UnderWay(dialogue)
        self._under_way.append(call)
        try:
            yield
        except anyio.get_cancelled_exc_class():
            if len(self._gave_up) < TELLING:
                self._gave_up.add(dialogue.owner)
            raise
        finally:
            self._under_way.remove(call)
            for scope in call.questions:
                scope.cancel()

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        *,
        _related_request_id: RequestId | None = None,
    ) -> dict[str, Any]:
        if method == "initialize" and self._interactive:
            params = {**(params or {}), "capabilities": ALL}
        meta = dict((params or {}).get("_meta") or {})
        if SPOKEN_FOR in meta:
            capabilities = meta.pop(SPOKEN_FOR)
            if CLIENT_CAPABILITIES_META_KEY in meta:
                meta[CLIENT_CAPABILITIES_META_KEY] = capabilities
            params = {**(params or {}), "_meta": meta}
        return await super().send_raw_request(
            method, params, opts, _related_request_id=_related_request_id
        )

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        **options: Any,
    ) -> None:
        async def answer(
            context: DispatchContext[TransportContext], method: str, params: Any
        ) -> dict[str, Any]:
            if self._interactive and method in QUESTIONS:
                return await self._ask(method, params or {})
            return await on_request(context, method, params)

        await super().run(answer, on_notify, on_notify_intercept, **options)

    async def _ask(self, method: str, params: JsonObject) -> dict[str, Any]:
        match self._under_way:
            case [call] if self._gave_up <= {call.dialogue.owner}:
                pass
            case []:
                raise MCPError(INVALID_REQUEST, f"{method}: no call is under way")
            case [_]:
                message = f"{method}: it may be for a call that another client has given up"
                raise MCPError(INVALID_REQUEST, message)
            case _:
                message = f"{method}: several calls are under way, and it may be for any of them"
                raise MCPError(INVALID_REQUEST, message)
        if QUESTIONS[method] not in call.dialogue.capabilities:
            raise MCPError(METHOD_NOT_FOUND, f"{method}: the client cannot answer it")
        if len(call.questions) >= MOST_QUESTIONS:
            message = f"{method}: {MOST_QUESTIONS} questions are open, as many as there may be"
            raise MCPError(INVALID_REQUEST, message)
        with anyio.CancelScope() as scope:
            call.questions.add(scope)
            try:
                return dict(await call.dialogue.ask(method, params))
            except MCPError:
                raise
            except Exception as error:
                raise MCPError(INTERNAL_ERROR, f"{method}: the client gave no answer") from error
            finally:
                call.questions.discard(scope)
        raise MCPError(INVALID_REQUEST, f"{method}: the call has ended")
