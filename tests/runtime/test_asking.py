"""What tools ask of whoever calls them: elicitation, sampling and roots, in every combination."""

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

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
CAPABLE: Json = {"elicitation": {"form": {}}, "sampling": {}, "roots": {"listChanged": True}}
REFUSAL = {
    "elicitation": "elicitation/create",
    "sampling": "sampling/createMessage",
    "roots": "roots/list",
}


class Asked:
    """Answers what servers ask, and keeps it."""

    def __init__(self) -> None:
        self.questions: list[Json] = []

    def __call__(self, message: Json) -> Json:
        self.questions.append(message)
        return {"result": ANSWERS[METHODS[message["method"]]]}


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
    wire: Relays, front: str, back: str, what: str
) -> None:
    asked = Asked()
    with wire.through(front, capabilities=CAPABLE, answerer=asked) as client:
        answer = text(ask(client, back, what))
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
    wire: Relays, front: str, back: str, what: str
) -> None:
    with wire.through(front, agent="bob", capabilities=CAPABLE) as client:
        question = ask(client, back, what)["result"]
        assert question["resultType"] == "input_required"
        assert question["requestState"] == "round 1"
        assert METHODS[question["inputRequests"]["q"]["method"]] == what
        again = {"inputResponses": {"q": ANSWERS[what]}, "requestState": "round 1"}
        assert text(ask(client, back, what, **again)) == {
            "result": ANSWERS[what],
            "state": "round 1",
        }
    assert kinds(wire, back)[-2:] == [("failed", "input_required"), ("completed", None)]


@pytest.mark.parametrize("back", ["modern-stdio", "modern-http"])
def test_a_call_that_only_asks_unlocks_nothing(wire: Relays, back: str) -> None:
    with wire.through("modern-stdio", capabilities=CAPABLE) as client:
        ask(client, back, "elicitation")
        guarded = {"name": skill(back, "fixed"), "arguments": {"case": "text"}}
        refused = client.request("tools/call", guarded)["result"]
        assert refused["content"][0]["text"] == (
            f"{back}-fixed requires {back}-ask, which was called but did not succeed in this "
            f"session. Call {back}-ask again, then retry."
        )
        again = {"inputResponses": {"q": ANSWERS["elicitation"]}, "requestState": "round 1"}
        ask(client, back, "elicitation", **again)
        assert "isError" not in client.request("tools/call", guarded)["result"]


@pytest.mark.parametrize("back", ["legacy-stdio", "legacy-http"])
@pytest.mark.parametrize("front", ["modern-stdio", "modern-http"])
def test_a_client_that_cannot_be_asked_during_a_call_is_a_clear_error_for_the_server(
    wire: Relays, front: str, back: str
) -> None:
    with wire.through(front, capabilities=CAPABLE) as client:
        error = text(ask(client, back, "elicitation"))["error"]
    assert error == {
        "code": -32600,
        "message": "elicitation/create: a client of 2026-07-28 cannot be asked during a call",
    }


@pytest.mark.parametrize("what", ANSWERS)
@pytest.mark.parametrize("back", BACKS)
@pytest.mark.parametrize("front", FRONTS)
def test_a_client_is_not_asked_for_what_it_does_not_declare(
    wire: Relays, front: str, back: str, what: str
) -> None:
    others = {name: value for name, value in CAPABLE.items() if name != what}
    with wire.through(front, capabilities=others) as client:
        [block] = ask(client, back, what)["result"]["content"]
    if back.startswith("modern"):
        assert block["text"] == f"the client declares {sorted(others)}"
    else:
        message = f"{REFUSAL[what]}: the client cannot answer it"
        assert json.loads(block["text"]) == {"error": {"code": -32601, "message": message}}


@pytest.mark.parametrize("back", BACKS)
@pytest.mark.parametrize("front", ["legacy-stdio", "legacy-http"])
def test_a_client_that_will_not_answer_is_an_error_of_the_call(
    wire: Relays, front: str, back: str
) -> None:
    no = {"code": -32099, "message": "the user is out", "data": {"until": 5}}
    with wire.through(front, capabilities=CAPABLE, answerer=lambda _: {"error": no}) as client:
        answer = ask(client, back, "elicitation")
    assert (answer if back.startswith("modern") else text(answer))["error"] == no


@pytest.mark.parametrize("back", ["legacy-stdio", "legacy-http"])
def test_a_question_that_may_be_for_another_agent_is_asked_of_nobody(
    wire: Relays, back: str
) -> None:
    asked = Asked()
    go, started = wire.directory / f"go-{back}", wire.directory / f"other-{back}"
    waiting = {"until": str(go), "started": str(started)}
    with (
        wire.through("legacy-http", agent="bob") as bob,
        wire.through("legacy-http", capabilities=CAPABLE, answerer=asked) as ada,
    ):
        other = threading.Thread(
            target=bob.request,
            args=("tools/call", {"name": skill(back, "wait"), "arguments": waiting}),
        )
        other.start()
        until(started.exists)
        error = text(ask(ada, back, "elicitation"))["error"]
        go.touch()
        other.join(20)
        assert text(ask(ada, back, "elicitation"))["result"] == ANSWERS["elicitation"]
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
