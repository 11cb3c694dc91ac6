"""The gateway as a relay: a client gets through it what it gets from the server itself.

Every combination of the protocol's era and way (stdio, streamable HTTP) in front and behind, held
against the server on the wire, where no model stands between that could drop what it does not know.
"""

import json
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

import pytest

from tests.support.raw_clients import Json, RawClient
from tests.support.relays import BACKS, ENVIRON, FRONTS, Relays, canonical, skill
from tests.support.servers.corpus_cases import (
    DEEP,
    ERRORS,
    ODD_NAMES,
    ODD_RESULTS,
    RESULTS,
    TOOLS,
    UNFIT_RESULTS,
    large_text,
)


@pytest.fixture(scope="module")
def clients(wire: Relays) -> Iterator[Mapping[str, RawClient]]:
    """One client in each form, direct ones under `=` and their form."""
    with ExitStack() as stack:
        yield {
            **{front: stack.enter_context(wire.through(front)) for front in FRONTS},
            **{f"={back}": stack.enter_context(wire.direct(back)) for back in BACKS},
        }


@pytest.fixture(params=FRONTS)
def front(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def client(front: str, clients: Mapping[str, RawClient]) -> RawClient:
    return clients[front]


@pytest.fixture(params=BACKS)
def back(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(back: str, clients: Mapping[str, RawClient]) -> RawClient:
    return clients[f"={back}"]


def until(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(2000):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("it did not come about")


def call(client: RawClient, tool: str, **arguments: object) -> Json:
    return client.request("tools/call", {"name": tool, "arguments": arguments})


def differing(client: RawClient, server: RawClient, back: str, tool: str, cases: object) -> list:
    """Return the cases that come otherwise through the gateway than from the server."""
    return [
        (case, canonical(ours), canonical(theirs))
        for case in cases
        if canonical(ours := call(client, skill(back, tool), case=case))
        != canonical(theirs := call(server, tool, case=case))
    ]


def test_every_result_is_what_the_server_gave(
    client: RawClient, server: RawClient, back: str
) -> None:
    assert differing(client, server, back, "give", [*RESULTS, *ODD_RESULTS]) == []


def test_every_protocol_error_is_what_the_server_gave(
    client: RawClient, server: RawClient, back: str
) -> None:
    assert differing(client, server, back, "fault", ERRORS) == []


@pytest.mark.parametrize("case", UNFIT_RESULTS)
def test_a_result_that_cannot_be_passed_on_is_a_clear_error(
    client: RawClient, back: str, case: str
) -> None:
    error = call(client, skill(back, "give"), case=case)["error"]
    assert error["code"] == -32603
    assert error["message"].startswith(("the server's result ", "the answer is no valid JSON-RPC"))
    assert call(client, skill(back, "give"), case="text")["result"]["content"]


def test_a_tool_is_listed_as_its_server_lists_it(
    client: RawClient, server: RawClient, back: str
) -> None:
    shown = {tool["name"]: tool for tool in client.request("tools/list", {})["result"]["tools"]}
    listed = {tool["name"]: tool for tool in _all_tools(server)}
    assert list(listed) == [tool["name"] for tool in TOOLS]
    odd = {name: f"odd{number}" for number, name in enumerate(ODD_NAMES)}
    for name, tool in listed.items():
        if name == "fixed":
            tool["inputSchema"]["properties"].pop("to")
            tool["inputSchema"]["required"].remove("to")
        described = {"description": tool.get("description") or "As the skill says."}
        id_ = skill(back, odd.get(name, name))
        assert shown[id_] == tool | described | {"name": id_}


def _all_tools(client: RawClient) -> list[Json]:
    """Read all the pages of a listing."""
    tools: list[Json] = []
    page: Json = {"nextCursor": None}
    while "nextCursor" in page:
        cursor = {"cursor": page["nextCursor"]} if page["nextCursor"] else {}
        page = client.request("tools/list", cursor)["result"]
        tools += page["tools"]
    return tools


def test_a_large_result_passes_whole(client: RawClient, server: RawClient, back: str) -> None:
    ours = call(client, skill(back, "large"), bytes=1_000_000)
    assert canonical(ours) == canonical(call(server, "large", bytes=1_000_000))


def test_a_result_of_sixty_megabytes_passes_whole(clients: Mapping[str, RawClient]) -> None:
    ours = call(clients["modern-http"], skill("legacy-stdio", "large"), bytes=60_000_000)
    [block] = ours["result"]["content"]
    assert block["text"] == large_text(60_000_000)


def test_progress_comes_in_order_with_total_and_message(client: RawClient, back: str) -> None:
    call_ = {"name": skill(back, "steps"), "arguments": {"steps": 50}}
    client.notified.clear()
    answer = client.request("tools/call", call_, progressToken="mine")
    assert answer["result"]["content"] == [{"type": "text", "text": "done"}]
    steps = [
        {"progressToken": "mine", "progress": step + 0.5, "total": 1000, "message": f"ü {step}"}
        for step in range(50)
    ]
    assert [each["params"] for each in client.notified] == [
        *steps,
        {"progressToken": "mine", "progress": 50},
    ]


def test_who_asks_for_no_progress_gets_none(client: RawClient, back: str) -> None:
    client.notified.clear()
    call(client, skill(back, "steps"), steps=3)
    assert client.notified == []


def test_a_cancelled_call_is_cancelled_upstream_recorded_and_unlocks_nothing(
    wire: Relays, front: str, back: str, client: RawClient
) -> None:
    started = wire.directory / f"started-{front}-{back}"
    cancelled = wire.cancelled
    client.give_up(
        "tools/call",
        {"name": skill(back, "wait"), "arguments": {"started": str(started)}},
        started.exists,
    )
    until(lambda: wire.cancelled > cancelled)

    def recorded() -> list[Json]:
        return [row for row in wire.rows(skill(back, "wait")) if str(started) in row["inputs"]]

    until(lambda: bool(recorded()))
    [row] = recorded()
    assert (row["outcome"], row["error_kind"]) == ("failed", "cancelled")
    refused = call(client, skill(back, "typed"))["result"]
    assert refused["content"][0]["text"] == (
        f"{back}-typed requires {back}-wait, which was called but did not succeed in this "
        f"session. Call {back}-wait again, then retry."
    )


def test_a_call_that_takes_too_long_fails_and_is_cancelled_upstream(
    wire: Relays, back: str, client: RawClient
) -> None:
    cancelled = wire.cancelled
    result = call(client, skill(back, "brief"))["result"]
    assert result == {
        **result,
        "isError": True,
        "content": [
            {
                "type": "text",
                "text": f"{back}-brief failed: it did not answer within 0.3 seconds.",
            }
        ],
    }
    until(lambda: wire.cancelled > cancelled)
    row = wire.rows(skill(back, "brief"))[-1]
    assert (row["outcome"], row["error_kind"]) == ("failed", "timeout")


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [("words", "a string"), (3, "a number"), ([1], "a list"), (False, "a boolean")],
)
def test_arguments_that_are_no_object_fail_on_record(
    wire: Relays, client: RawClient, arguments: object, kind: str
) -> None:
    sent = {"name": "legacy-stdio-echo", "arguments": arguments}
    result = client.request("tools/call", sent)["result"]
    assert result["isError"] is True
    assert result["content"][0]["text"] == (
        f"legacy-stdio-echo was not run: its arguments are no JSON object (they are {kind})."
    )
    row = wire.rows("legacy-stdio-echo")[-1]
    assert (row["outcome"], row["error_kind"]) == ("failed", "invalid_arguments")
    assert json.loads(row["inputs"]) == {"broken": json.dumps(arguments)}


def test_params_that_are_malformed_elsewhere_fail_on_record(
    wire: Relays, clients: Mapping[str, RawClient]
) -> None:
    sent = {"name": "legacy-stdio-echo", "arguments": {}, "_meta": 5}
    result = clients["legacy-http"].request("tools/call", sent)["result"]
    assert result["content"][0]["text"] == (
        "legacy-stdio-echo was not run: its arguments are no JSON object "
        "(`params._meta` is malformed)."
    )
    assert wire.rows("legacy-stdio-echo")[-1]["error_kind"] == "invalid_arguments"


@pytest.mark.parametrize(("name", "shown"), [(5, "(5)"), (None, "(null)"), ({}, "({})")])
@pytest.mark.parametrize("front", ["legacy-stdio", "legacy-http", "modern-stdio"])
def test_a_name_that_is_no_text_is_refused_on_record(
    wire: Relays, client: RawClient, name: object, shown: str
) -> None:
    result = client.request("tools/call", {"name": name, "arguments": {}})["result"]
    assert result["isError"] is True
    assert result["content"][0]["text"].startswith(f"{shown} is not one of your tools. ")
    row = wire.rows(shown)[-1]
    assert (row["policy_decision"], row["rule"], row["tool"]) == ("deny", "grant", None)


def test_a_call_before_the_handshake_is_turned_away(wire: Relays) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x"}}
    pipe = subprocess.PIPE
    command = wire.command("ada")
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=ENVIRON) as gateway:
        assert gateway.stdin is not None
        assert gateway.stdout is not None
        gateway.stdin.write(json.dumps(body).encode() + b"\n")
        gateway.stdin.flush()
        assert json.loads(gateway.stdout.readline())["error"]["code"] == -32602
        gateway.stdin.close()
    assert wire.rows("x") == []


ARGUMENTS: list[Json] = [
    {},
    {"n": [0, -1, 2**53 + 1, 2**64, 10**40, -0.0, 0.1, 1e308, 5e-324, 1.0]},
    {"": None, "a": [None, True, {"b": {}}], "\u00e9": 1, "e\u0301": 2, "\x00": "\x00"},
    {"text": "\U0001d54f \u202e \u2028 \ufeff \uffff \x7f\x85\r\n"},
    {"deep": json.loads("[" * DEEP + "]" * DEEP)},
    {"_meta": 1, "name": 2, "arguments": 3, "case": "text"},
]


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=range(len(ARGUMENTS)))
def test_arguments_reach_the_server_as_they_were_sent(
    client: RawClient, server: RawClient, back: str, arguments: Json
) -> None:
    def echoed(reached: RawClient, tool: str) -> str:
        [block] = call(reached, tool, **arguments)["result"]["content"]
        return json.dumps(json.loads(block["text"])["arguments"])

    assert echoed(client, skill(back, "echo")) == echoed(server, "echo") == json.dumps(arguments)


@pytest.mark.parametrize("unfit", [float("inf"), float("nan")])
def test_arguments_that_no_json_holds_are_a_clear_error(client: RawClient, unfit: float) -> None:
    sent = {"name": "legacy-stdio-echo", "arguments": {"a": unfit}}
    error = client.request("tools/call", sent)["error"]
    assert error["code"] == -32602
    assert error["message"].startswith("the arguments are no JSON: ")


def test_half_a_character_in_a_result_costs_no_other(client: RawClient, back: str) -> None:
    answer = call(client, skill(back, "give"), case="half")
    if back.endswith("http"):
        assert answer["error"]["message"] == "the answer is no valid JSON-RPC message"
    else:
        assert answer["result"]["content"] == [{"type": "text", "text": "x?y"}]
    assert "result" in call(client, skill(back, "give"), case="text")


@pytest.mark.parametrize("front", ["legacy-stdio", "modern-stdio", "modern-http"])
def test_half_a_character_in_arguments_costs_no_answer(client: RawClient) -> None:
    error = call(client, "legacy-stdio-echo", a="x\ud800y")["error"]
    assert error["code"] in (-32700, -32602)


@pytest.mark.parametrize("back", ["modern-stdio", "modern-http"])
def test_a_result_of_a_kind_that_nobody_asked_for_is_no_result(
    client: RawClient, back: str
) -> None:
    error = call(client, skill(back, "give"), case="other-kind")["error"]
    assert (error["code"], error["message"]) == (
        -32603,
        "the server's result is of a kind that nobody asked for (`task`)",
    )


def test_a_skill_calls_the_very_tool_that_it_names_whatever_that_is_called(
    client: RawClient, back: str
) -> None:
    for number, name in enumerate(ODD_NAMES):
        [block] = call(client, skill(back, f"odd{number}"))["result"]["content"]
        assert json.loads(block["text"]) == name


@pytest.mark.parametrize(
    "name",
    [
        "Legacy-stdio-echo",
        "legacy-stdio-echo ",
        "\uff4cegacy-stdio-echo",
        "legacy\u2010stdio-echo",
        "legacy-stdio-e\u0301cho",
        "legacy-stdio-echo\u200b",
        "legacy-stdio/echo",
        "echo",
    ],
)
def test_a_name_that_is_like_a_skills_is_none(client: RawClient, name: str) -> None:
    [block] = call(client, name)["result"]["content"]
    assert " is not one of your tools. Your tools are " in block["text"]
