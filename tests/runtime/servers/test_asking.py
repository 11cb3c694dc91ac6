"""What tools ask of whoever calls them: elicitation, sampling and roots, in every combination."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitRequestParams, ElicitResult, TextContent

from tests.support.gateways import Era
from tests.support.raw_clients import Json, RawClient
from tests.support.relays import BACKS, FRONTS, Relays, skill

ANSWERS: dict[str, Json] = {
    "elicitation": {"action": "accept", "content": {"name": "zoë"}},
    "sampling": {
        "role": "assistant",
        "content": {"type": "text", "text": "hello"},
        "model": "m",
        "stopReason": "endTurn",
    },
    "roots": {"roots": [{"uri": "file:///a", "name": "a"}]},
}
METHODS = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
CAPABLE: Json = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}
REFUSAL = {
    "elicitation": "elicitation/create",
    "sampling": "sampling/createMessage",
    "roots": "roots/list",
}


NO: Json = {"code": -32099, "message": "the user is out", "data": {"until": 5}}


class Asked:
    """A client that answers what servers ask, and keeps it."""

    def __init__(self) -> None:
        self.questions: list[Json] = []
        self.willing = True
        self.client: RawClient

    def __call__(self, message: Json) -> Json:
        self.questions.append(message)
        answer = {"result": ANSWERS[METHODS[message["method"]]]}
        return answer if self.willing else {"error": NO}


@pytest.fixture(scope="module")
def capable(wire: Relays) -> Iterator[Mapping[str, Asked]]:
    """Clients in each form that can be asked anything."""
    with ExitStack() as stack:
        clients = {front: Asked() for front in FRONTS}
        for front, asked in clients.items():
            way = wire.through(front, capabilities=CAPABLE, answerer=asked)
            asked.client = stack.enter_context(way)
        yield clients


@pytest.fixture(scope="module")
def bare(wire: Relays) -> Iterator[Mapping[str, RawClient]]:
    """Clients in each form that can be asked nothing."""
    with ExitStack() as stack:
        yield {front: stack.enter_context(wire.through(front)) for front in FRONTS}


def ask(client: RawClient, back: str, what: str, **more: Any) -> Json:
    sent = {"name": skill(back, "ask"), "arguments": {"for": what}, **more}
    return client.request("tools/call", sent)


def text(answer: Json) -> Any:
    [block] = answer["result"]["content"]
    return json.loads(block["text"])


def kinds(wire: Relays, back: str) -> list[tuple[str, str | None]]:
    return [(row["outcome"], row["error_kind"]) for row in wire.rows(skill(back, "ask"))]


@pytest.mark.parametrize("what", ANSWERS)
@pytest.mark.parametrize("back", BACKS)
@pytest.mark.parametrize("front", ["legacy-stdio", "legacy-http"])
def test_a_client_of_the_handshake_era_is_asked_during_its_call(
    wire: Relays, capable: Mapping[str, Asked], front: str, back: str, what: str
) -> None:
    asked = capable[front]
    asked.questions.clear()
    answer = text(ask(asked.client, back, what))
    assert answer["result"] == ANSWERS[what]
    [question] = asked.questions
    assert METHODS[question["method"]] == what
    if what == "elicitation":
        assert question["params"]["message"] == "name?"
        assert question["params"]["requestedSchema"]["properties"] == {"name": {"type": "string"}}
    legs = [("completed", None)]
    if back.startswith("modern"):
        assert answer["state"] == "round 1"
        legs = [("failed", "input_required"), ("completed", None)]
    assert kinds(wire, back)[-len(legs) :] == legs


@pytest.mark.parametrize("what", ANSWERS)
@pytest.mark.parametrize("back", ["modern-stdio", "modern-http"])
@pytest.mark.parametrize("front", ["modern-stdio", "modern-http"])
def test_a_client_of_the_newest_protocol_gets_the_question_and_calls_again(
    wire: Relays, capable: Mapping[str, Asked], front: str, back: str, what: str
) -> None:
    client = capable[front].client
    question = ask(client, back, what)["result"]
    assert question["resultType"] == "input_required"
    assert question["requestState"] == "round 1"
    assert METHODS[question["inputRequests"]["q"]["method"]] == what
    again = {"inputResponses": {"q": ANSWERS[what]}, "requestState": "round 1"}
    answer = text(ask(client, back, what, **again))
    assert answer == {"result": ANSWERS[what], "state": "round 1"}
    assert kinds(wire, back)[-2:] == [("failed", "input_required"), ("completed", None)]


def test_a_call_that_only_asks_unlocks_nothing(wire: Relays) -> None:
    back = "modern-http"
    with wire.through("modern-stdio", capabilities=CAPABLE) as client:
        ask(client, back, "elicitation")
        guarded = {"name": skill(back, "fixed"), "arguments": {"case": "text"}}
        refused = client.request("tools/call", guarded)["result"]
        assert refused["content"][0]["text"] == (
            "modern-http-fixed requires modern-http-ask, which was called but did not succeed in "
            "this session. Call modern-http-ask again, then retry."
        )
        again = {"inputResponses": {"q": ANSWERS["elicitation"]}, "requestState": "round 1"}
        ask(client, back, "elicitation", **again)
        assert "isError" not in client.request("tools/call", guarded)["result"]


@pytest.mark.parametrize("back", ["legacy-stdio", "legacy-http"])
@pytest.mark.parametrize("front", ["modern-stdio", "modern-http"])
def test_a_client_that_cannot_be_asked_during_a_call_is_a_clear_error_for_the_server(
    capable: Mapping[str, Asked], front: str, back: str
) -> None:
    error = text(ask(capable[front].client, back, "elicitation"))["error"]
    assert error == {
        "code": -32600,
        "message": "elicitation/create: a client of 2026-07-28 cannot be asked during a call",
    }


@pytest.mark.parametrize("what", ANSWERS)
@pytest.mark.parametrize("back", BACKS)
@pytest.mark.parametrize("front", FRONTS)
def test_a_client_is_not_asked_for_what_it_does_not_declare(
    bare: Mapping[str, RawClient], front: str, back: str, what: str
) -> None:
    [block] = ask(bare[front], back, what)["result"]["content"]
    if back.startswith("modern"):
        assert block["text"] == "the client declares []"
    else:
        message = f"{REFUSAL[what]}: the client cannot answer it"
        assert json.loads(block["text"]) == {"error": {"code": -32601, "message": message}}


@pytest.mark.parametrize("back", BACKS)
@pytest.mark.parametrize("front", ["legacy-stdio", "legacy-http"])
def test_a_client_that_will_not_answer_is_an_error_of_the_call(
    capable: Mapping[str, Asked], front: str, back: str
) -> None:
    capable[front].willing = False
    answer = ask(capable[front].client, back, "elicitation")
    capable[front].willing = True
    assert (answer if back.startswith("modern") else text(answer))["error"] == NO


@pytest.mark.parametrize("back", ["legacy-stdio", "legacy-http"])
def test_a_question_that_may_be_for_another_agent_is_asked_of_nobody(
    wire: Relays, capable: Mapping[str, Asked], back: str
) -> None:
    asked = capable["legacy-http"]
    asked.questions.clear()
    go, started = wire.directory / f"go-{back}", wire.directory / f"other-{back}"
    waiting = {"until": str(go), "started": str(started)}
    with wire.through("legacy-http", agent="bob") as bob:
        other = threading.Thread(
            target=bob.request,
            args=("tools/call", {"name": skill(back, "wait"), "arguments": waiting}),
        )
        other.start()
        until(started.exists)
        error = text(ask(asked.client, back, "elicitation"))["error"]
        go.touch()
        other.join(20)
        assert text(ask(asked.client, back, "elicitation"))["result"] == ANSWERS["elicitation"]
    assert error == {
        "code": -32600,
        "message": "elicitation/create: several calls are under way, and it may be for any of them",
    }
    assert len(asked.questions) == 1


def until(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(2000):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("it did not come about")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("era", "back"),
    [("legacy", "legacy-http"), ("legacy", "modern-stdio"), ("auto", "modern-http")],
)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_client_of_the_sdk_is_asked(wire: Relays, era: Era, back: str) -> None:
    async def answer(_context: object, params: ElicitRequestParams) -> ElicitResult:
        assert params.message == "name?"
        return ElicitResult(action="accept", content={"name": "zoë"})

    headers = {"Authorization": f"Bearer {wire.tokens['ada']}"}
    async with httpx2.AsyncClient(headers=headers) as http:
        transport = streamable_http_client(wire.url, http_client=http)
        async with Client(transport, mode=era, elicitation_callback=answer) as client:
            result = await client.call_tool(skill(back, "ask"), {"for": "elicitation"})
    [block] = result.content
    assert isinstance(block, TextContent)
    assert json.loads(block.text)["result"] == ANSWERS["elicitation"]
