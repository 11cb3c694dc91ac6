"""The gateway as a relay: a client gets through it what it gets from the server itself.

Every combination of the protocol's era and way (stdio, streamable HTTP) in front and behind, held
against the server on the wire, where no model stands between that could drop what it does not know.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

import pytest

from tests.support.raw_clients import Json, RawClient
from tests.support.relays import BACKS, FRONTS, Relays, canonical, relays, skill
from tests.support.servers.corpus_cases import (
    ERRORS,
    ODD_RESULTS,
    RESULTS,
    TOOLS,
    UNFIT_RESULTS,
    large_text,
)


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relays]:
    with relays(tmp_path_factory.mktemp("relays")) as running:
        yield running


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
    for name, tool in listed.items():
        if name == "fixed":
            tool["inputSchema"]["properties"].pop("to")
            tool["inputSchema"]["required"].remove("to")
        described = {"description": tool.get("description") or "As the skill says."}
        assert shown[skill(back, name)] == tool | described | {"name": skill(back, name)}


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


@pytest.mark.parametrize("front", ["modern-http", "legacy-stdio"])
def test_a_result_of_sixty_megabytes_passes_whole(
    clients: Mapping[str, RawClient], front: str
) -> None:
    back = "legacy-stdio" if front == "modern-http" else "modern-http"
    ours = call(clients[front], skill(back, "large"), bytes=60_000_000)
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
    wire: Relays, front: str, back: str
) -> None:
    started = wire.directory / f"started-{front}-{back}"
    seen = wire.notes.read_text().count("\n") if wire.notes.exists() else 0
    with wire.through(front) as client:
        client.give_up(
            "tools/call",
            {"name": skill(back, "wait"), "arguments": {"started": str(started)}},
            started.exists,
        )
        until(lambda: wire.notes.exists() and wire.notes.read_text().count("\n") > seen)
        until(lambda: call(client, skill(back, "typed"))["result"]["isError"])
        refused = call(client, skill(back, "typed"))["result"]
        assert refused["content"][0]["text"] == (
            f"{back}-typed requires {back}-wait, which was called but did not succeed in this "
            f"session. Call {back}-wait again, then retry."
        )
    rows = [row for row in wire.rows() if row["skill"] == skill(back, "wait")]
    assert (rows[-1]["outcome"], rows[-1]["error_kind"]) == ("failed", "cancelled")
