"""Who is asked what a server of the handshake era asks, which does not say for which call."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp.shared.memory import MessageStream, create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

from interceptors import Dialogue, JsonObject
from seriatim.runtime.servers.asking import AskingDispatcher

pytestmark = pytest.mark.anyio

QUESTION = "elicitation/create"


class Client:
    """Can be asked, and keeps what it is asked."""

    def __init__(self, owner: str) -> None:
        self.asked: list[str] = []
        self.dialogue = Dialogue({"elicitation": {}}, owner, self.ask)

    async def ask(self, method: str, _params: JsonObject) -> JsonObject:
        self.asked.append(method)
        return {"action": "decline"}


class Server:
    """Asks by hand."""

    def __init__(self, streams: MessageStream) -> None:
        self._incoming, self._outgoing = streams

    async def ask(self) -> Any:
        """Return the result, or the text of the error."""
        await self.put()
        with anyio.fail_after(10):
            message = (await self._incoming.receive()).message
        if isinstance(message, JSONRPCError):
            return message.error.message
        assert isinstance(message, JSONRPCResponse)
        return message.result

    async def put(self) -> None:
        question = JSONRPCRequest(jsonrpc="2.0", id=1, method=QUESTION, params={})
        await self._outgoing.send(SessionMessage(question))


async def refuse(*_: object) -> dict[str, Any]:
    raise AssertionError("the session is asked")


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[AskingDispatcher, Server]]:
    async with (
        create_client_server_memory_streams() as (ours, theirs),
        anyio.create_task_group() as tasks,
    ):
        dispatcher = AskingDispatcher(*ours, interactive=True)
        await tasks.start(dispatcher.run, refuse, refuse)
        yield dispatcher, Server(theirs)
        tasks.cancel_scope.cancel()


async def give_up(dispatcher: AskingDispatcher, client: Client) -> None:
    with anyio.CancelScope() as scope, dispatcher.during(client.dialogue):
        scope.cancel()
        await anyio.sleep_forever()


async def test_the_only_caller_is_asked() -> None:
    ann = Client("ann")
    async with connected() as (dispatcher, server):
        with dispatcher.during(ann.dialogue):
            assert await server.ask() == {"action": "decline"}
    assert ann.asked == [QUESTION]


async def test_without_a_call_nobody_is_asked() -> None:
    async with connected() as (dispatcher, server):
        with dispatcher.during(Client("ann").dialogue):
            pass
        assert await server.ask() == f"{QUESTION}: no call is under way"


async def test_of_two_callers_none_is_asked() -> None:
    ann, bob = Client("ann"), Client("bob")
    async with connected() as (dispatcher, server):
        with dispatcher.during(ann.dialogue), dispatcher.during(bob.dialogue):
            said = await server.ask()
    assert said == f"{QUESTION}: several calls are under way, and it may be for any of them"
    assert ann.asked == bob.asked == []


async def test_a_question_that_may_be_for_a_call_that_another_gave_up_is_asked_of_nobody() -> None:
    ann, bob = Client("ann"), Client("bob")
    async with connected() as (dispatcher, server):
        await give_up(dispatcher, bob)
        with dispatcher.during(ann.dialogue):
            said = await server.ask()
    assert said == f"{QUESTION}: it may be for a call that another client has given up"
    assert ann.asked == bob.asked == []


async def test_who_gave_up_a_call_itself_is_asked() -> None:
    ann = Client("ann")
    async with connected() as (dispatcher, server):
        await give_up(dispatcher, ann)
        with dispatcher.during(ann.dialogue):
            assert await server.ask() == {"action": "decline"}


async def test_a_question_does_not_outlive_its_call() -> None:
    asked, withdrawn = anyio.Event(), anyio.Event()

    async def think(_method: str, _params: JsonObject) -> JsonObject:
        asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            withdrawn.set()
        return {}

    async with connected() as (dispatcher, server):
        with dispatcher.during(Dialogue({"elicitation": {}}, "ann", think)):
            await server.put()
            await asked.wait()
        with anyio.fail_after(10):
            await withdrawn.wait()


async def test_a_fault_on_the_way_to_the_client_is_kept_from_the_server() -> None:
    async def fail(_method: str, _params: JsonObject) -> JsonObject:
        raise ValueError("an inner secret")

    async with connected() as (dispatcher, server):
        with dispatcher.during(Dialogue({"elicitation": {}}, "ann", fail)):
            assert await server.ask() == f"{QUESTION}: the client gave no answer"
