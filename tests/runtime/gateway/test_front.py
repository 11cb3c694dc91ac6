"""The gateway's front over the wire: nothing crosses, nothing waits for ever, nothing is let in."""

import json
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import SocketStream

from interceptors import MemoryAuditSink
from seriatim.runtime.gateway import door, half_open
from seriatim.runtime.gateway.registrations import BUSY
from tests.support.by_hand import (
    ACCEPT,
    HELLO,
    bearer,
    call,
    modern_headers,
    open_session,
    post,
)
from tests.support.certificates import make_certificate
from tests.support.gateways import (
    REFUSAL,
    Era,
    Gateway,
    eventually,
    running,
    serving,
    write_workspace,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """uvicorn runs on asyncio alone."""
    return "asyncio"


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> Era:
    return request.param


@asynccontextmanager
async def gateway_in(directory: Path, **settings: object) -> AsyncIterator[Gateway]:
    audit = MemoryAuditSink()
    async with (
        running(write_workspace(directory, settings=settings), audit) as run,
        serving(run, audit) as gateway,
    ):
        yield gateway


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with gateway_in(tmp_path) as gateway:
        yield gateway


async def connected(gateway: Gateway) -> SocketStream:
    url = httpx2.URL(gateway.url)
    return await anyio.connect_tcp("127.0.0.1", url.port or 0)


def head(gateway: Gateway, *headers: str) -> bytes:
    host = httpx2.URL(gateway.url).netloc.decode()
    return "\r\n".join(["POST /mcp HTTP/1.1", f"Host: {host}", *headers, "", ""]).encode()


def in_event(text: str) -> Any:
    """Return the one message in a stream of events."""
    [data] = [line for line in text.splitlines() if line.startswith("data: ")]
    return json.loads(data.removeprefix("data: "))


def succeeded(answer: Any) -> bool:
    return "content" in answer["result"] and not answer["result"].get("isError", False)


async def all_of(stream: SocketStream) -> bytes:
    received = b""
    try:
        while True:
            received += await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return received


@pytest.mark.parametrize(
    ("headers", "challenge", "error"),
    [
        ({}, 'Bearer realm="seriatim"', "unauthorized"),
        (
            {"Authorization": "Bearer nonsense"},
            'Bearer realm="seriatim", error="invalid_token", '
            'error_description="the token is unknown; ask whoever runs this gateway for one"',
            "invalid_token",
        ),
    ],
)
async def test_who_is_not_let_in_is_told_why(
    gateway: Gateway, headers: dict[str, str], challenge: str, error: str
) -> None:
    answer = await post(gateway.url, "tools/list", {}, **headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == challenge
    assert answer.json()["error"] == error


async def test_a_token_that_has_expired_says_so(tmp_path: Path) -> None:
    audit = MemoryAuditSink()
    time = [0.0]
    async with (
        running(write_workspace(tmp_path), audit) as run,
        serving(run, audit, now=lambda: time[0]) as gateway,
    ):
        await gateway.register.end(gateway.register.entries()[0].registration.id)
        entry, token = await gateway.register.issue(run.id, next(iter(run.topology.agents)), 60)
        assert (await post(gateway.url, "tools/list", {}, **bearer(token))).status_code == 200
        time[0] = 60
        answer = await post(gateway.url, "tools/list", {}, **bearer(token))
        assert (answer.status_code, answer.json()["error_description"]) == (
            401,
            "the token has expired; ask for a new one",
        )
        await entry.closed.wait()


async def test_one_request_id_of_two_agents_at_once_crosses_nothing(
    gateway: Gateway, tmp_path: Path
) -> None:
    """Both in both eras, at the same moment: a slow call of one and quick ones of the other."""
    answers: dict[str, Any] = {}
    calls = tmp_path / "calls.jsonl"

    async def slow_of_ada() -> None:
        params = call("slow", seconds=30, until=str(tmp_path / "go"))
        answers["ada"] = (await post(gateway.url, "tools/call", params, **ada)).json()

    async def slow_in_session() -> None:
        params = call("slow", seconds=30, until=str(tmp_path / "go"))
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answers["session"] = (await http.post(gateway.url, json=body, headers=of_ada)).text

    ada, bob = (bearer(gateway.tokens[agent]) for agent in ("ada", "bob"))
    async with httpx2.AsyncClient(timeout=30) as http, anyio.create_task_group() as tasks:
        of_ada = await open_session(http, gateway.url, gateway.tokens["ada"])
        of_bob = await open_session(http, gateway.url, gateway.tokens["bob"])
        tasks.start_soon(slow_of_ada)
        tasks.start_soon(slow_in_session)
        await eventually(lambda: calls.exists() and calls.read_text().count("slow") == 2)
        refused = await post(gateway.url, "tools/call", call("get-convention"), **bob)
        assert refused.json()["id"] == 1
        assert refused.json()["result"]["content"][0]["text"] == REFUSAL
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call("get-convention")}
        in_session = await http.post(gateway.url, json=body, headers=of_bob)
        assert REFUSAL in in_session.text
        # Whatever bob cancels is none of ada's.
        cancel = {"requestId": 1, "reason": "mine"}
        body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel}
        assert (await http.post(gateway.url, json=body, headers=of_bob)).status_code == 202
        (tmp_path / "go").touch()
    assert answers["ada"]["id"] == 1
    assert succeeded(answers["ada"])
    assert succeeded(in_event(answers["session"]))
    assert [row.agent for row in gateway.audit.records] == ["bob", "bob", "ada", "ada"]


async def test_a_request_id_in_use_in_a_session_is_turned_away_and_harms_nobody(
    gateway: Gateway, tmp_path: Path
) -> None:
    answers: list[str] = []
    calls = tmp_path / "calls.jsonl"

    def body(id_: object, tool: str, **arguments: Any) -> dict[str, Any]:
        params = call(tool, **arguments)
        return {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}

    async def slow() -> None:
        sent = body(7, "slow", seconds=30, until=str(tmp_path / "go"))
        answers.append((await http.post(gateway.url, json=sent, headers=session)).text)

    async with httpx2.AsyncClient(timeout=30) as http, anyio.create_task_group() as tasks:
        session = await open_session(http, gateway.url, gateway.tokens["ada"])
        tasks.start_soon(slow)
        await eventually(lambda: calls.exists() and "slow" in calls.read_text())
        # The SDK takes 7 and "7" for one.
        for id_ in (7, "7"):
            twice = await http.post(gateway.url, json=body(id_, "echo"), headers=session)
            assert twice.status_code == 400
            assert twice.json()["error"]["message"] == (
                'request id "7" is in use in this session; give each request its own'
            )
        other = await http.post(gateway.url, json=body(8, "echo"), headers=session)
        assert succeeded(in_event(other.text))
        (tmp_path / "go").touch()
    assert succeeded(in_event(answers[0]))
    async with httpx2.AsyncClient(timeout=30) as http:
        again = await http.post(gateway.url, json=body(7, "echo"), headers=session)
        assert succeeded(in_event(again.text))


async def test_a_result_that_its_client_did_not_wait_for_satisfies_nothing(
    gateway: Gateway, era: Era, tmp_path: Path
) -> None:
    """`search-code` requires `slow`; the client hangs up while `slow` runs, and it ends well."""
    calls, go = tmp_path / "calls.jsonl", tmp_path / "go"
    params = call("slow", seconds=30, until=str(go))
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    if era == "auto":
        headers = modern_headers("tools/call", params) | bearer(gateway.tokens["ada"])
        answer = await post(gateway.url, "tools/list", {}, **bearer(gateway.tokens["ada"]))
        body["params"] = {"_meta": answer.request.content and _meta(answer), **params}
    async with httpx2.AsyncClient(timeout=30) as http, anyio.create_task_group() as tasks:
        if era == "legacy":
            headers = await open_session(http, gateway.url, gateway.tokens["ada"])

        async def hang_up() -> None:
            async with httpx2.AsyncClient(timeout=30) as other:
                await other.post(gateway.url, json=body, headers=headers)

        tasks.start_soon(hang_up)
        await eventually(lambda: calls.exists() and "slow" in calls.read_text())
        tasks.cancel_scope.cancel()
    await eventually(lambda: not any(each.door.requests for each in gateway.register.entries()))
    go.touch()
    await eventually(lambda: len(gateway.audit.records) == 1)
    refused = await post(
        gateway.url, "tools/call", call("search-code"), **bearer(gateway.tokens["ada"])
    )
    assert refused.json()["result"]["content"][0]["text"] == (
        "search-code requires slow, which was called but did not succeed in this session. "
        "Call slow again, then retry."
    )


def _meta(answer: httpx2.Response) -> Any:
    return json.loads(answer.request.content)["params"]["_meta"]


async def test_calls_beyond_those_in_flight_are_answered_at_once(tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    async with gateway_in(tmp_path, limits={"calls_in_flight": 2}) as gateway:
        ada, bob = (bearer(gateway.tokens[agent]) for agent in ("ada", "bob"))
        slow = call("slow", seconds=30, until=str(tmp_path / "go"))
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(lambda: post(gateway.url, "tools/call", slow, **ada))
            await eventually(lambda: calls.exists() and calls.read_text().count("slow") == 2)
            busy = (await post(gateway.url, "tools/call", call("echo"), **ada)).json()
            assert busy["error"]["code"] == BUSY
            assert "2 calls in flight, as many as it may" in busy["error"]["message"]
            other = await post(gateway.url, "tools/call", call("list-conventions"), **bob)
            assert succeeded(other.json())
            (tmp_path / "go").touch()
        after = await post(gateway.url, "tools/call", call("echo"), **ada)
        assert succeeded(after.json())


async def test_requests_beyond_those_that_may_be_open_are_turned_away(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_open() -> bool:
        return not any(entry.door.requests for entry in gateway.register.entries())

    async with httpx2.AsyncClient() as http:
        session = await open_session(http, gateway.url, gateway.tokens["ada"])
        await eventually(none_open)
        monkeypatch.setattr(door, "MOST_REQUESTS", 1)
        async with http.stream("GET", gateway.url, headers=session) as listening:
            assert listening.status_code == 200
            full = await post(gateway.url, "tools/list", {}, **bearer(gateway.tokens["ada"]))
            assert full.status_code == 429
            assert full.json()["error"]["message"] == (
                "this agent has 1 requests open, as many as it may"
            )
            other = await post(gateway.url, "tools/list", {}, **bearer(gateway.tokens["bob"]))
            assert other.status_code == 200
        await eventually(none_open)
        after = await post(gateway.url, "tools/list", {}, **bearer(gateway.tokens["ada"]))
        assert after.status_code == 200


async def test_a_stream_that_listens_ends_with_its_registration(gateway: Gateway) -> None:
    async with httpx2.AsyncClient(timeout=20) as http:
        session = await open_session(http, gateway.url, gateway.tokens["ada"])
        async with http.stream("GET", gateway.url, headers=session) as listening:
            ada = gateway.register.entries()[0]
            assert await gateway.register.end(ada.registration.id)
            with anyio.fail_after(10), suppress(httpx2.RemoteProtocolError):
                assert [part async for part in listening.aiter_bytes()] == []


async def test_sessions_beyond_those_that_an_agent_may_have_are_turned_away(
    tmp_path: Path,
) -> None:
    async with (
        gateway_in(tmp_path, limits={"sessions": 2}) as gateway,
        httpx2.AsyncClient() as http,
    ):
        for _ in range(2):
            await open_session(http, gateway.url, gateway.tokens["ada"])
        headers = ACCEPT | bearer(gateway.tokens["ada"])
        full = await http.post(gateway.url, json=HELLO, headers=headers)
        assert full.status_code == 503
        assert full.json()["error"]["message"] == "Too many open sessions"
        await open_session(http, gateway.url, gateway.tokens["bob"])


async def test_an_idle_session_ends(tmp_path: Path) -> None:
    async with (
        gateway_in(tmp_path, limits={"session_idle": "1s"}) as gateway,
        httpx2.AsyncClient() as http,
    ):
        session = await open_session(http, gateway.url, gateway.tokens["ada"])
        # No event tells that nothing happens.
        await anyio.sleep(1.3)
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        assert (await http.post(gateway.url, json=ping, headers=session)).status_code == 404


async def test_a_request_larger_than_the_settings_say_is_turned_away(tmp_path: Path) -> None:
    async with gateway_in(tmp_path, limits={"request_size": 2000}) as gateway:
        token = bearer(gateway.tokens["ada"])
        fits = await post(gateway.url, "tools/call", call("echo", text="x" * 1000), **token)
        assert fits.status_code == 200
        large = await post(gateway.url, "tools/call", call("echo", text="x" * 3000), **token)
        assert large.status_code == 413
        assert large.json()["error"]["message"] == "the request is larger than 2000 bytes"


async def test_a_body_that_never_comes_is_not_waited_for(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "BODY_SECONDS", 0.2)
    authorization = f"Authorization: Bearer {gateway.tokens['ada']}"
    with anyio.fail_after(10):
        async with await connected(gateway) as stream:
            await stream.send(head(gateway, authorization, "Content-Length: 100") + b"{")
            assert (await stream.receive()).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize(
    "sent", [b"", b"POST /mcp HT", b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n"]
)
async def test_a_connection_that_brings_no_request_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(half_open, "HEAD_SECONDS", 0.2)
    async with gateway_in(tmp_path) as gateway:
        with anyio.fail_after(10):
            async with await connected(gateway) as stream:
                if sent:
                    await stream.send(sent)
                assert await all_of(stream) == b""


async def test_a_connection_that_trickles_after_its_answer_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(half_open, "HEAD_SECONDS", 0.3)
    async with gateway_in(tmp_path) as gateway:
        with anyio.fail_after(10):
            async with await connected(gateway) as stream:
                await stream.send(head(gateway, "Content-Length: 1000000"))
                assert (await stream.receive()).startswith(b"HTTP/1.1 401 ")
                with suppress(anyio.BrokenResourceError):
                    while True:
                        await stream.send(b"x")
                        await anyio.sleep(0.02)


async def test_connections_beyond_those_that_there_may_be_are_closed_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(half_open, "MOST_CONNECTIONS", 3)
    async with gateway_in(tmp_path) as gateway:
        with anyio.fail_after(10):
            kept = [await connected(gateway) for _ in range(3)]
            async with await connected(gateway) as one_too_many:
                assert await all_of(one_too_many) == b""
            for stream in kept:
                await stream.aclose()
            await eventually_answers(gateway)


async def eventually_answers(gateway: Gateway) -> None:
    with anyio.fail_after(10):
        while True:
            try:
                await post(gateway.url, "tools/list", {}, **bearer(gateway.tokens["ada"]))
            except httpx2.TransportError:
                await anyio.sleep(0.05)
            else:
                return


async def test_a_client_that_does_not_read_holds_up_nobody(
    gateway: Gateway, era: Era, tmp_path: Path
) -> None:
    """Its result of 20 MB waits for it; another client, and another agent, are served."""
    calls = tmp_path / "calls.jsonl"
    params = call("fail", text="x" * 20_000_000)
    async with httpx2.AsyncClient(timeout=30) as http:
        if era == "auto":
            headers = modern_headers("tools/call", params) | bearer(gateway.tokens["ada"])
            meta = _meta(await post(gateway.url, "tools/list", {}, **bearer(gateway.tokens["ada"])))
            params = {"_meta": meta, **params}
        else:
            headers = await open_session(http, gateway.url, gateway.tokens["ada"])
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    lines = [f"{name}: {value}" for name, value in headers.items()]
    lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    async with await connected(gateway) as deaf:
        deaf.extra(anyio.abc.SocketAttribute.raw_socket).setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVBUF, 4096
        )
        await deaf.send(head(gateway, *lines) + body.encode())
        await eventually(lambda: calls.exists() and "fail" in calls.read_text())
        with anyio.fail_after(10):
            async with gateway.over_http("ada", era) as ada, gateway.over_http("bob", era) as bob:
                assert not (await ada.call_tool("echo", {})).is_error
                assert not (await bob.call_tool("list-conventions", {})).is_error


async def test_two_hundred_sessions_are_served_at_once(tmp_path: Path) -> None:
    sessions: set[str] = set()
    all_open = anyio.Event()
    answers: list[str] = []
    params = call("list-conventions")
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}

    async def live(gateway: Gateway, http: httpx2.AsyncClient, agent: str) -> None:
        session = await open_session(http, gateway.url, gateway.tokens[agent])
        sessions.add(session["Mcp-Session-Id"])
        if len(sessions) == 200:
            all_open.set()
        await all_open.wait()
        answers.append((await http.post(gateway.url, json=body, headers=session)).text)

    limits = httpx2.Limits(max_connections=200)
    async with (
        gateway_in(tmp_path, limits={"calls_in_flight": 100}) as gateway,
        httpx2.AsyncClient(timeout=60, limits=limits) as http,
        anyio.create_task_group() as tasks,
    ):
        for _ in range(100):
            tasks.start_soon(live, gateway, http, "ada")
            tasks.start_soon(live, gateway, http, "bob")
    assert len(answers) == 200
    assert all("console, card" in answer for answer in answers)


async def test_over_tls_the_same_is_served(tmp_path: Path, era: Era) -> None:
    certificate, tls = make_certificate(tmp_path)
    audit = MemoryAuditSink()
    trusting = ssl.create_default_context(cafile=certificate)
    async with (
        running(write_workspace(tmp_path), audit) as run,
        serving(run, audit, encryption=tls) as gateway,
    ):
        assert gateway.url.startswith("https://127.0.0.1:")
        async with gateway.over_http("ada", era, verify=trusting) as ada:
            assert (await ada.call_tool("get-convention", {})).is_error
            assert not (await ada.call_tool("list-conventions", {})).is_error
        origin = {"Origin": gateway.url.removesuffix("/mcp")}
        async with httpx2.AsyncClient(verify=trusting) as http:
            answer = await http.get(gateway.url, headers=origin)
            assert answer.status_code == 401
        with pytest.raises(httpx2.TransportError):
            await post(gateway.url.replace("https", "http"), "tools/list", {})
