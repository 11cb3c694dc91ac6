"""Whatever is sent to the gateway's front: no crash, no traceback, nothing of another agent."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from interceptors import MemoryAuditSink
from seriatim.runtime.gateway.admin import AdminKey
from tests.support.by_hand import (
    ACCEPT,
    ENVELOPE,
    bearer,
    call,
    modern_headers,
    open_session,
    post,
)
from tests.support.gateways import Gateway, running, serving, write_workspace

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

ADMIN = "the-token-of-the-admin"
EXAMPLES = 60
"""Of each kind; every one is a request to a real socket."""


@pytest.fixture
def anyio_backend() -> str:
    """uvicorn runs on asyncio alone."""
    return "asyncio"


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    audit = MemoryAuditSink()
    async with (
        running(write_workspace(tmp_path), audit) as run,
        serving(run, audit, admin=(AdminKey(ADMIN),)) as gateway,
    ):
        yield gateway


def drawn(strategy: st.SearchStrategy[Any]) -> list[Any]:
    """Return values of a strategy, for tests that await."""
    values: list[Any] = []

    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    @given(strategy)
    def gather(value: Any) -> None:
        values.append(value)

    gather()
    return values


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
METHODS = st.sampled_from(
    ["initialize", "ping", "tools/list", "tools/call", "resources/read", "subscriptions/listen", ""]
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | JSON,
        "id": st.integers() | st.text() | JSON,
        "method": METHODS | JSON,
        "params": st.fixed_dictionaries(
            {},
            optional={
                "name": st.sampled_from(["echo", "nope", "get-convention"]) | JSON,
                "arguments": JSON,
                "_meta": st.just(ENVELOPE) | JSON,
                "cursor": JSON,
            },
        )
        | JSON,
        "result": JSON,
        "error": JSON,
    },
)
BODIES = (
    MESSAGES.map(lambda message: json.dumps(message).encode())
    | JSON.map(lambda value: json.dumps(value).encode())
    | st.binary(max_size=200)
)
NASTY = [
    b"[" * 100_000,
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", '
    b'"arguments": ' + b'{"a": ' * 50_000 + b"1" + b"}" * 50_000 + b"}}",
    b'{"jsonrpc": "2.0", "id": ' + b"9" * 5_000 + b', "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "\\ud800"}}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "id": 2}',
    b"\xff\xfe\x00",
]


async def check(gateway: Gateway, answer: httpx2.Response) -> None:
    assert answer.status_code < 500 or answer.status_code == 503, answer.text
    shown = answer.text + str(answer.headers)
    assert "Traceback" not in shown
    assert ".py" not in shown
    for token in (*gateway.tokens.values(), ADMIN):
        assert token not in shown


async def check_all_is_well(gateway: Gateway) -> None:
    for agent in ("ada", "bob"):
        params = call("list-conventions")
        answer = await post(gateway.url, "tools/call", params, **bearer(gateway.tokens[agent]))
        assert "console, card" in answer.text
    assert all(row.agent in ("ada", "bob") for row in gateway.audit.records)
    assert [entry.door.requests for entry in gateway.register.entries()] == [0, 0]


async def test_bodies_of_the_newest_protocol(gateway: Gateway) -> None:
    token = bearer(gateway.tokens["ada"])
    async with httpx2.AsyncClient(timeout=20) as http:
        for body in drawn(BODIES) + NASTY:
            headers = modern_headers("tools/call", {"name": "echo"}) | token
            with anyio.move_on_after(2):  # a stream that only listens has no end
                await check(gateway, await http.post(gateway.url, content=body, headers=headers))
    await check_all_is_well(gateway)


async def test_bodies_of_the_handshake_protocol_in_a_session(gateway: Gateway) -> None:
    async with httpx2.AsyncClient(timeout=20) as http:
        session = await open_session(http, gateway.url, gateway.tokens["ada"])
        for body in drawn(BODIES) + NASTY:
            with anyio.fail_after(20):
                headers = session | {"Content-Type": "application/json"}
                await check(gateway, await http.post(gateway.url, content=body, headers=headers))
    await check_all_is_well(gateway)


async def test_bodies_without_a_session(gateway: Gateway) -> None:
    headers = ACCEPT | bearer(gateway.tokens["ada"]) | {"Content-Type": "application/json"}
    async with httpx2.AsyncClient(timeout=20) as http:
        for body in drawn(BODIES) + NASTY:
            await check(gateway, await http.post(gateway.url, content=body, headers=headers))
    await check_all_is_well(gateway)


async def test_bodies_of_the_admin_api(gateway: Gateway) -> None:
    wanted = st.fixed_dictionaries(
        {},
        optional={
            "agent": st.sampled_from(["ada", "eve"]) | JSON,
            "run": st.text() | JSON,
            "ttl": st.sampled_from(["1h", "1y"]) | JSON,
        },
    ).map(lambda value: json.dumps(value).encode())
    async with httpx2.AsyncClient(timeout=20, headers=bearer(ADMIN)) as http:
        url = gateway.url.replace("/mcp", "/registrations")
        for body in drawn(wanted | st.binary(max_size=200)) + NASTY:
            answer = await http.post(url, content=body)
            await check(gateway, answer)
            if answer.status_code == 201:
                made = f"{url}/{answer.json()['id']}"
                assert (await http.delete(made)).status_code == 204
    await check_all_is_well(gateway)


HEADERS = st.dictionaries(
    st.sampled_from(
        ["Accept", "Content-Type", "MCP-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Origin"]
    ),
    st.sampled_from(["", "*/*", "application/json", "text/event-stream", "2026-07-28", "x" * 300]),
)


async def test_methods_and_headers_of_any_kind(gateway: Gateway) -> None:
    methods = st.sampled_from(["GET", "PUT", "DELETE", "OPTIONS", "HEAD", "TRACE", "PATCH", "BREW"])
    paths = st.sampled_from(
        ["/mcp", "/mcp/", "/", "/registrations", "/registrations/..%2f", "/%00"]
    )
    base = gateway.url.removesuffix("/mcp")
    async with httpx2.AsyncClient(timeout=20, headers=bearer(gateway.tokens["ada"])) as http:
        for method, path, headers in drawn(st.tuples(methods, paths, HEADERS)):
            await check(gateway, await http.request(method, base + path, headers=headers))
    await check_all_is_well(gateway)


async def test_bytes_that_are_no_http(gateway: Gateway) -> None:
    port = httpx2.URL(gateway.url).port or 0
    start = st.sampled_from([b"", b"GET /mcp HTTP/1.1\r\n", b"POST /mcp HTTP/1.1\r\nHost: x\r\n"])
    for first, rest in drawn(st.tuples(start, st.binary(min_size=1, max_size=200))):
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(first + rest + b"\r\n\r\n")
            with anyio.move_on_after(0.2):  # some of it is the beginning of a request
                answer = await stream.receive()
                assert answer.startswith(b"HTTP/1.1 4"), answer
                assert b"Traceback" not in answer
    await check_all_is_well(gateway)
