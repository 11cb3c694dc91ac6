"""What a client of the handshake era is asked for a tool of the newest protocol."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from mcp import MCPError
from mcp_types import ClientCapabilities, ElicitationCapability
from pydantic import RootModel

from seriatim.runtime.gateway.clients import answers_to
from seriatim.runtime.gateway.relay import Inbound

pytestmark = pytest.mark.anyio

ELICITATION = {"method": "elicitation/create", "params": {"message": "?", "odd": 1}}


class Session:
    """Answers each question with its own method and params."""

    client_capabilities = ClientCapabilities(elicitation=ElicitationCapability())

    async def send_request(self, request: Any, answer: type[RootModel[Any]], **_: Any) -> Any:
        return answer({"method": request.method, "params": request.params})


def inbound() -> Inbound:
    known = {"session": Session(), "protocol_version": "2025-11-25", "request_id": 1}
    return cast("Inbound", SimpleNamespace(**known))


async def test_all_that_is_asked_is_answered_under_its_key_and_the_state_goes_back() -> None:
    question = {"inputRequests": {"a": ELICITATION, "b": ELICITATION}, "requestState": "s"}
    asked = {**ELICITATION, "params": {"message": "?", "odd": 1, "_meta": {}}}
    assert await answers_to(inbound(), question) == {
        "inputResponses": {"a": asked, "b": asked},
        "requestState": "s",
    }
    assert await answers_to(inbound(), {"requestState": "s"}) == {"requestState": "s"}


@pytest.mark.parametrize(
    "request_", [{"method": "roots/list"}, {"method": "tools/call"}, {"params": {}}, "x", None]
)
async def test_a_client_is_asked_nothing_that_it_does_not_declare(request_: object) -> None:
    with pytest.raises(MCPError, match="the client cannot answer"):
        await answers_to(inbound(), {"inputRequests": {"a": request_}})
