"""How many questions of a server wait for an answer."""

import anyio
import pytest
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest

from interceptors import Dialogue, JsonObject
from seriatim.runtime.servers.asking import MOST_QUESTIONS, AskingDispatcher
from seriatim.runtime.servers.session import RelaySession

pytestmark = pytest.mark.anyio


async def never(_method: str, _params: JsonObject) -> JsonObject:
    await anyio.sleep_forever()
    raise AssertionError


async def test_questions_that_nobody_answers_do_not_pile_up() -> None:
    async with create_client_server_memory_streams() as (ours, theirs):
        dispatcher = AskingDispatcher(*ours, interactive=True)
        incoming, outgoing = theirs
        async with RelaySession(dispatcher, ignore):
            with dispatcher.during(Dialogue({"roots": {}}, "owner", never)), anyio.fail_after(5):
                for number in range(MOST_QUESTIONS + 1):
                    question = JSONRPCRequest(jsonrpc="2.0", id=number, method="roots/list")
                    await outgoing.send(SessionMessage(question))
                answer = await incoming.receive()
                assert isinstance(answer, SessionMessage)
                assert isinstance(answer.message, JSONRPCError)
                assert answer.message.id == MOST_QUESTIONS
                assert "as many as there may be" in answer.message.error.message


async def ignore(_message: object) -> None:
    """Receive what nobody waits for."""
