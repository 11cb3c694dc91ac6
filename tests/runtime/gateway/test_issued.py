"""Tokens of an authorization server: taken for the agent that they name, and for nobody else."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interceptors import AgentId, MemoryAuditSink
from seriatim.runtime.gateway import keys as keys_module
from seriatim.runtime.gateway.bearer import TurnedAway
from seriatim.runtime.gateway.issued import Issued
from seriatim.runtime.gateway.keys import LIFE, PAUSE, Keys, KeysUnavailableError, UnknownKeyError
from seriatim.runtime.gateway.register import FOREVER, open_register
from tests.support.by_hand import bearer, post
from tests.support.gateways import Era, Gateway, running, serving, write_workspace
from tests.support.issuer import AUDIENCE, ISSUER, Issuer

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """uvicorn runs on asyncio alone."""
    return "asyncio"


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> Era:
    return request.param


@pytest.fixture
def issuer() -> Issuer:
    return Issuer()


def auth(keys: str, **more: Any) -> dict[str, Any]:
    return {"auth": {"issuer": ISSUER, "audience": AUDIENCE, "keys": keys, **more}}


@asynccontextmanager
async def trusting(directory: Path, issuer: Issuer, **more: Any) -> AsyncIterator[Gateway]:
    """Serve with no token given out, so that only the issuer's tokens lead anywhere."""
    (directory / "keys.json").write_text(issuer.jwks())
    audit = MemoryAuditSink()
    path = write_workspace(directory, settings=auth("keys.json", **more))
    async with running(path, audit) as run, serving(run, audit) as gateway:
        for entry in gateway.register.entries():
            await gateway.register.end(entry.registration.id)
        yield gateway


@pytest.fixture
async def gateway(tmp_path: Path, issuer: Issuer) -> AsyncIterator[Gateway]:
    async with trusting(tmp_path, issuer) as gateway:
        yield gateway


async def answer_to(gateway: Gateway, token: str) -> tuple[int, str]:
    answer = await post(gateway.url, "tools/list", {}, **bearer(token))
    return answer.status_code, answer.json().get("error_description", "")


async def test_a_token_opens_the_agent_that_it_names_and_a_later_one_the_same_standing(
    gateway: Gateway, issuer: Issuer, era: Era
) -> None:
    gateway.tokens = {"first": issuer.token(), "second": issuer.token(lifetime=90)}
    async with gateway.over_http("first", era) as ada:
        assert (await ada.call_tool("get-convention", {})).is_error
        assert not (await ada.call_tool("list-conventions", {})).is_error
    async with gateway.over_http("second", era) as ada:
        assert not (await ada.call_tool("get-convention", {})).is_error
    assert {(row.run, row.agent) for row in gateway.audit.records} == {("r1", "ada")}
    assert len(gateway.register.entries()) == 1


async def test_claims_lead_to_run_and_agent_as_the_settings_say(
    tmp_path: Path, issuer: Issuer
) -> None:
    claims = {"claims": {"agent": "azp", "run": "job"}, "agents": {"client-7": "bob"}}
    async with trusting(tmp_path, issuer, **claims) as gateway:
        assert (await answer_to(gateway, issuer.token(azp="client-7", job="r2")))[0] == 200
        assert (await answer_to(gateway, issuer.token(azp="ada", job="r3")))[0] == 200
        scopes = [(each.scope.run, each.scope.agent) for each in gateway.register.entries()]
        assert scopes == [("r2", "bob"), ("r3", "ada")]
        for job in (None, "", "a b", 7, "x" * 65):
            status, why = await answer_to(gateway, issuer.token(azp="ada", job=job))
            assert (status, why) == (403, "the token names no run: it needs an id as claim `job`")


@pytest.mark.parametrize(
    ("claims", "status", "why"),
    [
        ({"lifetime": -31}, 401, "the token has expired; get a new one"),
        (
            {"aud": "other"},
            401,
            "the token is not meant for this gateway (its audience is another)",
        ),
        ({"aud": None}, 401, "this is no valid token"),
        ({"exp": None}, 401, "this is no valid token"),
        ({"iss": None}, 401, "this is no valid token"),
        (
            {"iss": "https://evil.example"},
            401,
            "the token is from an issuer that this gateway does not know",
        ),
        ({"nbf": 9_999_999_999}, 401, "the token is not valid yet"),
        (
            {"agent": "eve"},
            403,
            "the token's agent cannot be served: the topology has no such agent",
        ),
        ({"agent": None}, 403, "the token names no agent: it has no claim `seriatim_agent`"),
        ({"agent": ["ada"]}, 403, "the token names no agent: it has no claim `seriatim_agent`"),
        ({"lifetime": -10}, 200, ""),
    ],
)
async def test_a_token_that_does_not_fit_is_told_why(
    gateway: Gateway, issuer: Issuer, claims: dict[str, Any], status: int, why: str
) -> None:
    assert await answer_to(gateway, issuer.token(**claims)) == (status, why)


async def test_a_token_signed_by_anybody_else_opens_nothing(
    gateway: Gateway, issuer: Issuer
) -> None:
    other = Issuer()
    assert await answer_to(gateway, other.token()) == (401, "the token's signature is wrong")
    other.rotate("k2")
    status, why = await answer_to(gateway, other.token())
    assert (status, why) == (401, "the token is signed with a key that its issuer does not have")
    head, body, _ = issuer.token().split(".")
    assert (await answer_to(gateway, f"{head}.{body}."))[0] == 401


async def test_a_token_signed_with_the_public_key_as_a_secret_opens_nothing(
    gateway: Gateway, issuer: Issuer
) -> None:
    claims = jwt.decode(issuer.token(), options={"verify_signature": False})
    secret = issuer.jwks() * 2
    for algorithm in ("HS256", "none"):
        key = secret if algorithm == "HS256" else ""
        forged = jwt.encode(claims, key, algorithm=algorithm, headers={"kid": "k1"})
        status, why = await answer_to(gateway, forged)
        assert (status, why) == (
            401,
            "the token is signed in a way that this gateway does not take",
        )


async def test_an_agent_with_a_token_of_its_own_is_not_entered_by_claims(
    gateway: Gateway, issuer: Issuer
) -> None:
    _, token = await gateway.register.issue(gateway.run.id, AgentId("ada"), FOREVER)
    status, why = await answer_to(gateway, issuer.token())
    assert status == 403
    assert "registered in this run already" in why
    assert (await answer_to(gateway, token))[0] == 200


async def test_clients_learn_whom_to_ask_for_a_token(gateway: Gateway) -> None:
    answer = await post(gateway.url, "tools/list", {})
    well_known = "https://gateway.example/.well-known/oauth-protected-resource/mcp"
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == (
        f'Bearer realm="seriatim", resource_metadata="{well_known}"'
    )
    async with httpx2.AsyncClient() as http:
        base = gateway.url.removesuffix("/mcp")
        # As a proxy would pass it on.
        headers = {"Host": "gateway.example"}
        metadata = await http.get(
            base + "/.well-known/oauth-protected-resource/mcp", headers=headers
        )
    assert metadata.json() == {
        "resource": AUDIENCE,
        "authorization_servers": [ISSUER],
        "bearer_methods_supported": ["header"],
    }


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


async def test_keys_are_fetched_once_and_again_when_they_are_old(issuer: Issuer) -> None:
    clock = Clock()
    async with issuer.serving() as url:
        keys = Keys(url, Path(), clock)
        for _ in range(3):
            assert (await keys.find("k1")).key_id == "k1"
        assert issuer.fetches == 1
        clock.time = LIFE
        issuer.rotate("k2")
        with pytest.raises(UnknownKeyError):
            await keys.find("k1")
        assert issuer.fetches == 2


async def test_a_new_key_is_found_and_a_flood_of_unknown_ones_does_not_reach_the_issuer(
    issuer: Issuer,
) -> None:
    clock = Clock()
    async with issuer.serving() as url:
        keys = Keys(url, Path(), clock)
        await keys.find("k1")
        issuer.rotate("k2")
        for _ in range(20):
            with pytest.raises(UnknownKeyError):
                await keys.find("k2")
        assert issuer.fetches == 1
        clock.time = PAUSE
        assert (await keys.find("k2")).key_id == "k2"
        assert issuer.fetches == 2


async def test_without_fresh_keys_no_token_is_taken_and_the_operator_is_told(
    issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    async with issuer.serving() as url:
        keys = Keys(url, Path(), clock)
        await keys.find("k1")
        issuer.available = False
        clock.time = LIFE - 1
        await keys.find("k1")
        clock.time = LIFE
        for _ in range(3):
            with pytest.raises(KeysUnavailableError):
                await keys.find("k1")
        assert issuer.fetches == 2
        assert f"the keys at `{url}` cannot be had, tokens are refused without them" in caplog.text
        issuer.available = True
        clock.time += PAUSE
        await keys.find("k1")


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"keys": []}', '{"keys": [{"kty": "oct"}]}'])
async def test_a_file_without_keys_opens_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "keys.json").write_text(content)
    with pytest.raises(KeysUnavailableError):
        await Keys("keys.json", tmp_path).find("")


async def test_keys_of_no_end_are_not_read(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys_module, "LARGEST", 50)
    async with issuer.serving() as url:
        with pytest.raises(KeysUnavailableError):
            await Keys(url, Path()).find("k1")


async def test_while_keys_cannot_be_had_requests_are_answered_503(
    tmp_path: Path, issuer: Issuer
) -> None:
    async with trusting(tmp_path, issuer) as gateway:
        (tmp_path / "keys.json").unlink()
        assert await answer_to(gateway, issuer.token()) == (
            503,
            "tokens cannot be judged at the moment; tell the operator",
        )


def encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()


HEADERS = st.one_of(
    st.binary(max_size=50),
    st.sampled_from([b"[" * 20_000, b'{"alg": "ES256", "kid": ' + b"9" * 5_000 + b"}"]),
    st.dictionaries(
        st.sampled_from(["alg", "kid", "typ", "crit", "b64"]),
        st.one_of(st.none(), st.integers(), st.text(max_size=5), st.just("ES256"), st.just("k1")),
    ).map(lambda header: json.dumps(header).encode()),
)


async def test_no_token_whatever_it_holds_is_an_accident(tmp_path: Path, issuer: Issuer) -> None:
    async with trusting(tmp_path, issuer) as gateway:
        [section] = gateway.run.workspace.settings.auth
        async with open_register(gateway.run) as register:
            check = Issued(section, Keys("keys.json", tmp_path), register)
            checked: list[str] = []

            @settings(suppress_health_check=list(HealthCheck), deadline=None)
            @given(header=HEADERS, body=st.binary(max_size=50), signature=st.binary(max_size=80))
            def gather(header: bytes, body: bytes, signature: bytes) -> None:
                checked.append(".".join(map(encoded, (header, body, signature))))

            gather()
            for token in [*checked, "..", "a.b.c", "\ud800.\x00.é"]:
                found = await check.verify(token)
                assert isinstance(found, TurnedAway)
                assert found.status == 401
