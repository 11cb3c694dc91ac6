"""The admin API over the wire."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from interceptors import MemoryAuditSink
from seriatim.runtime.gateway.admin import LARGEST_BODY, AdminKey
from tests.support.by_hand import bearer, call, post
from tests.support.gateways import Era, Gateway, eventually, running, serving, write_workspace

pytestmark = pytest.mark.anyio

ADMIN = "the-token-of-the-admin"


@pytest.fixture
def anyio_backend() -> str:
    """uvicorn runs on asyncio alone."""
    return "asyncio"


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> Era:
    return request.param


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    audit = MemoryAuditSink()
    limits = {"limits": {"registrations": 4}}
    async with (
        running(write_workspace(tmp_path, settings=limits), audit) as run,
        serving(run, audit, admin=(AdminKey(ADMIN),)) as gateway,
    ):
        yield gateway


@pytest.fixture
async def api(gateway: Gateway) -> AsyncIterator[httpx2.AsyncClient]:
    base = gateway.url.removesuffix("/mcp")
    async with httpx2.AsyncClient(base_url=base, headers=bearer(ADMIN)) as api:
        yield api


async def test_an_agent_that_is_registered_is_served_until_it_is_ended(
    gateway: Gateway, api: httpx2.AsyncClient, era: Era
) -> None:
    answer = await api.post("/registrations", json={"agent": "ada", "run": "r2"})
    assert answer.status_code == 201
    assert answer.headers["cache-control"] == "no-store"
    made = answer.json()
    assert sorted(made) == ["agent", "expires", "id", "run", "token", "url"]
    assert (made["agent"], made["run"], made["expires"]) == ("ada", "r2", None)
    assert made["url"] == gateway.url
    gateway.tokens["new"] = made["token"]
    async with gateway.over_http("new", era) as ada:
        assert not (await ada.call_tool("list-conventions", {})).is_error
        ended = await api.delete(f"/registrations/{made['id']}")
        assert (ended.status_code, ended.content) == (204, b"")
        left = await post(gateway.url, "tools/list", {}, **bearer(made["token"]))
        assert left.status_code == 401
        assert left.json() == {
            "error": "invalid_token",
            "error_description": "the registration of this token has been ended",
        }
    assert [(row.run, row.agent) for row in gateway.audit.records] == [("r2", "ada")]


async def test_agents_of_two_runs_have_two_standings(
    gateway: Gateway, api: httpx2.AsyncClient, era: Era
) -> None:
    made = (await api.post("/registrations", json={"agent": "ada", "run": "r2"})).json()
    gateway.tokens["other run"] = made["token"]
    async with gateway.over_http("ada", era) as one, gateway.over_http("other run", era) as two:
        await one.call_tool("list-conventions", {})
        assert not (await one.call_tool("get-convention", {})).is_error
        assert (await two.call_tool("get-convention", {})).is_error


async def test_the_end_of_a_registration_cancels_its_calls_and_they_are_on_record(
    gateway: Gateway, api: httpx2.AsyncClient, era: Era, tmp_path: Path
) -> None:
    made = (await api.post("/registrations", json={"agent": "ada", "run": "r2"})).json()
    gateway.tokens["new"] = made["token"]

    async def wait() -> None:
        # How its client takes it is the client's own business.
        try:
            async with gateway.over_http("new", era) as ada:
                await ada.call_tool("slow", {"seconds": 60})
        except* Exception:  # noqa: BLE001  the SDK has many words for it
            waited.set()

    waited = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        calls = tmp_path / "calls.jsonl"
        await eventually(lambda: calls.exists() and "slow" in calls.read_text())
        assert (await api.delete(f"/registrations/{made['id']}")).status_code == 204
        await eventually((tmp_path / "calls.jsonl.cancelled").exists)
        await eventually(lambda: len(gateway.audit.records) == 1)
        tasks.cancel_scope.cancel()
    [row] = gateway.audit.records
    assert (row.run, row.outcome, row.error_kind) == ("r2", "failed", "cancelled")


async def test_registrations_are_listed_without_their_tokens(
    gateway: Gateway, api: httpx2.AsyncClient
) -> None:
    made = (
        await api.post("/registrations", json={"agent": "bob", "run": "r2", "ttl": "8h"})
    ).json()
    answer = await api.get("/registrations")
    listed = answer.json()["registrations"]
    assert [(each["run"], each["agent"]) for each in listed] == [
        ("r1", "ada"),
        ("r1", "bob"),
        ("r2", "bob"),
    ]
    assert listed[2] == {key: value for key, value in made.items() if key != "token"}
    assert made["expires"].endswith("Z")
    for token in [*gateway.tokens.values(), made["token"], ADMIN]:
        assert token not in answer.text


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        ({"agent": "eve"}, 404, "unknown-agent"),
        ({"agent": "ada"}, 409, "registered"),
        ({"agent": "ada", "run": "a b"}, 400, "bad-request"),
        ({"agent": "ada", "run": "x" * 65}, 400, "bad-request"),
        ({"agent": "ada", "run": "r2", "ttl": "forever"}, 400, "bad-request"),
        ({"agent": "ada", "run": "r2", "ttl": "0s"}, 400, "bad-request"),
        ({"agent": "ada", "run": "r2", "ttl": 3600}, 400, "bad-request"),
        ({"agent": ""}, 400, "bad-request"),
        ({"agent": ["ada"]}, 400, "bad-request"),
        ({"agent": "ada", "admin": True}, 400, "bad-request"),
        ({}, 400, "bad-request"),
        ([], 400, "bad-request"),
    ],
)
async def test_what_cannot_be_registered_is_said(
    api: httpx2.AsyncClient, body: object, status: int, error: str
) -> None:
    answer = await api.post("/registrations", json=body)
    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert sorted(answer.json()) == ["error", "message"]


async def test_a_body_that_is_no_json_or_too_large_is_said(api: httpx2.AsyncClient) -> None:
    assert (await api.post("/registrations", content=b"{")).status_code == 400
    assert (await api.post("/registrations", content=b"\xff")).status_code == 400
    large: dict[str, Any] = {"agent": "x" * LARGEST_BODY}
    assert (await api.post("/registrations", json=large)).status_code == 413


async def test_there_are_no_more_registrations_than_the_settings_say(
    api: httpx2.AsyncClient,
) -> None:
    for number in range(2):
        answer = await api.post("/registrations", json={"agent": "ada", "run": f"x{number}"})
        assert answer.status_code == 201
    full = await api.post("/registrations", json={"agent": "ada", "run": "x2"})
    assert (full.status_code, full.json()["error"]) == (429, "full")


async def test_what_is_not_registered_cannot_be_ended(api: httpx2.AsyncClient) -> None:
    answer = await api.delete("/registrations/nobody")
    assert (answer.status_code, answer.json()["error"]) == (404, "unknown-registration")


@pytest.mark.parametrize("token", ["", "wrong", "ada's"])
async def test_without_the_admin_token_nothing_is_done(gateway: Gateway, token: str) -> None:
    own = {"": {}, "wrong": bearer("wrong"), "ada's": bearer(gateway.tokens["ada"])}[token]
    base = gateway.url.removesuffix("/mcp")
    async with httpx2.AsyncClient(base_url=base, headers=own) as stranger:
        [id_, *_] = [entry.registration.id for entry in gateway.register.entries()]
        for answer in (
            await stranger.post("/registrations", json={"agent": "ada", "run": "r2"}),
            await stranger.get("/registrations"),
            await stranger.delete(f"/registrations/{id_}"),
        ):
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer ")
    assert len(gateway.register.entries()) == 2


async def test_the_admin_token_is_no_agents_token(gateway: Gateway) -> None:
    answer = await post(gateway.url, "tools/call", call("echo"), **bearer(ADMIN))
    assert answer.status_code == 401


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [("Host", "evil.example", 421), ("Origin", "https://evil.example", 403)],
)
async def test_a_web_page_does_not_reach_the_admin_api(
    api: httpx2.AsyncClient, header: str, value: str, status: int
) -> None:
    answer = await api.get("/registrations", headers={header: value})
    assert answer.status_code == status


async def test_without_an_admin_token_there_is_no_admin_api(tmp_path: Path) -> None:
    audit = MemoryAuditSink()
    async with (
        running(write_workspace(tmp_path), audit) as run,
        serving(run, audit) as gateway,
        httpx2.AsyncClient(base_url=gateway.url.removesuffix("/mcp")) as api,
    ):
        assert (await api.get("/registrations", headers=bearer(ADMIN))).status_code == 404
