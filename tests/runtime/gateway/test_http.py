"""The gateway's HTTP side: who is let in, what goes over the wire, and how it ends."""

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anyio.lowlevel import checkpoint

from interceptors import MemoryAuditSink
from seriatim.runtime.gateway.http import Address, listen, url_of
from seriatim.runtime.gateway.tls import Plain
from tests.support.by_hand import ACCEPT, HELLO, bearer, call, post
from tests.support.gateways import Era, Gateway, eventually, running, serving, write_workspace

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """uvicorn runs on asyncio alone."""
    return "asyncio"


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    audit = MemoryAuditSink()
    async with (
        running(write_workspace(tmp_path), audit) as run,
        serving(run, audit) as gateway,
    ):
        yield gateway


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> Era:
    return request.param


@pytest.mark.parametrize("authorization", ["", "Bearer wrong", "Basic YTpi", "Bearer"])
async def test_without_a_right_token_nobody_is_let_in(gateway: Gateway, authorization: str) -> None:
    headers = {"Authorization": authorization} if authorization else {}
    answer = await post(gateway.url, "tools/list", {}, **headers)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer ")
    assert gateway.audit.records == []


async def test_no_part_of_an_answer_waits_for_the_client_to_acknowledge_another() -> None:
    accepted = anyio.Event()
    options: list[int] = []

    def note(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = writer.get_extra_info("socket")
        options.append(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()
        accepted.set()

    with listen(Address("127.0.0.1", 0)) as listener:
        # As uvicorn does: asyncio sets the option, on what it takes for TCP.
        async with (
            await asyncio.start_server(note, sock=listener),
            await anyio.connect_tcp(*listener.getsockname()),
        ):
            await accepted.wait()
    assert options == [1]


async def test_a_refusal_is_a_result_with_http_200(gateway: Gateway) -> None:
    authorization = f"Bearer {gateway.tokens['ada']}"
    for tool in ("get-convention", "unheard-of"):
        answer = await post(gateway.url, "tools/call", call(tool), Authorization=authorization)
        assert answer.status_code == 200
        assert answer.json()["result"]["isError"] is True


async def test_a_token_does_not_open_the_session_of_another(gateway: Gateway) -> None:
    def of(agent: str) -> dict[str, str]:
        return ACCEPT | bearer(gateway.tokens[agent])

    async with httpx2.AsyncClient() as http:
        opened = await http.post(gateway.url, json=HELLO, headers=of("ada"))
        session = {"Mcp-Session-Id": opened.headers["Mcp-Session-Id"]}
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        assert (
            await http.post(gateway.url, json=ping, headers=of("ada") | session)
        ).status_code == 200
        assert (
            await http.post(gateway.url, json=ping, headers=of("bob") | session)
        ).status_code == 404


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [("Host", "evil.example", 421), ("Origin", "https://evil.example", 403)],
)
async def test_a_web_page_that_leads_its_name_here_is_turned_away(
    gateway: Gateway, header: str, value: str, status: int
) -> None:
    authorization = f"Bearer {gateway.tokens['ada']}"
    headers = {"Authorization": authorization, header: value}
    answer = await post(gateway.url, "tools/list", {}, **headers)
    assert answer.status_code == status


async def test_large_arguments_pass_and_too_large_ones_are_turned_away(gateway: Gateway) -> None:
    authorization = f"Bearer {gateway.tokens['ada']}"
    large = call("fail", text="x" * 5_000_000)
    answer = await post(gateway.url, "tools/call", large, Authorization=authorization)
    assert len(answer.json()["result"]["content"][0]["text"]) == 5_000_000
    url = httpx2.URL(gateway.url)
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{url.port}\r\nAuthorization: {authorization}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {64 * 1024 * 1024 + 1}\r\n\r\n"
    )
    async with await anyio.connect_tcp("127.0.0.1", url.port or 0) as stream:
        await stream.send(head.encode())
        assert (await stream.receive()).startswith(b"HTTP/1.1 413 ")


async def test_a_token_is_in_no_log_and_in_no_row(
    tmp_path: Path, era: Era, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG, logger="seriatim")
    caplog.set_level(logging.DEBUG, logger="mcp.server")
    caplog.set_level(logging.DEBUG, logger="uvicorn")
    audit = MemoryAuditSink()
    async with (
        running(write_workspace(tmp_path), audit) as run,
        serving(run, audit) as gateway,
        gateway.over_http("ada", era) as ada,
    ):
        await ada.call_tool("echo", {})
        await ada.call_tool("nope", {})
        token = gateway.tokens["ada"]
    said = capfd.readouterr()
    assert token not in caplog.text + said.out + said.err + repr(audit.records)
    assert said.out == ""
    assert "Authorization" not in json.dumps([dict(row.inputs) for row in audit.records])


async def test_stopping_lets_a_short_call_finish_and_cancels_a_long_one(
    tmp_path: Path, era: Era
) -> None:
    audit = MemoryAuditSink()
    go, calls = tmp_path / "go", tmp_path / "calls.jsonl"
    finished: list[dict[str, Any]] = []

    async def work(gateway: Gateway, **arguments: Any) -> None:
        # How the client takes the end of the gateway is its own business.
        try:
            async with gateway.over_http("ada", era) as ada:
                await ada.list_tools()  # or it asks for them after the call
                await ada.call_tool("slow", {"seconds": 30, **arguments})
                finished.append(arguments)
        except* Exception:  # noqa: BLE001  the SDK has many words for it
            await checkpoint()

    async with (
        running(write_workspace(tmp_path), audit) as run,
        anyio.create_task_group() as clients,
    ):
        async with serving(run, audit) as gateway:
            clients.start_soon(partial(work, gateway, until=str(go)))
            clients.start_soon(work, gateway)
            await eventually(lambda: calls.exists() and len(calls.read_text().splitlines()) == 2)
            go.touch()
            leaving = anyio.current_time()
        assert anyio.current_time() - leaving < 10
        clients.cancel_scope.cancel()
    assert finished == [{"until": str(go)}]
    outcomes = sorted((row.outcome, row.error_kind) for row in audit.records)
    assert outcomes == [("completed", None), ("failed", "cancelled")]


@pytest.mark.parametrize(
    ("host", "loopback", "wildcard"),
    [
        ("127.0.0.1", True, False),
        ("127.8.8.8", True, False),
        ("::1", True, False),
        ("localhost", True, False),
        ("0.0.0.0", False, True),
        ("::", False, True),
        ("192.0.2.7", False, False),
        ("gateway.example", False, False),
    ],
)
def test_an_address_knows_who_can_reach_it(host: str, loopback: bool, wildcard: bool) -> None:
    address = Address(host, 0)
    assert (address.is_loopback, address.is_wildcard) == (loopback, wildcard)


def test_a_taken_port_is_said() -> None:
    with listen(Address("127.0.0.1", 0)) as first, pytest.raises(OSError, match="in use"):
        listen(Address("127.0.0.1", first.getsockname()[1]))


def test_the_url_of_an_address_of_six_has_brackets() -> None:
    with listen(Address("::1", 0)) as listener:
        port = listener.getsockname()[1]
        assert url_of(Address("::1", 0), listener, Plain()) == f"http://[::1]:{port}/mcp"
