"""Servers over streamable HTTP, on real sockets."""

from pathlib import Path

import anyio
import pytest

from interceptors import Completed, ServerProtocolError, ServerUnavailableError, ToolRef
from seriatim.runtime.servers.news import ServerBack, ServerLost
from seriatim.runtime.servers.running import RunningServers
from tests.support.mcp_servers import calls, http_definition, http_server
from tests.support.raw_endpoint import FAULTS, raw_endpoint
from tests.support.running_servers import ENVIRON, PLENTY, Opener, call, detail, text, until

pytestmark = pytest.mark.anyio


@pytest.fixture
def opened(tmp_path: Path) -> Opener:
    return Opener(tmp_path)


@pytest.fixture
def anyio_backend() -> str:
    # On trio everything passes too, but the SDK leaves the generators of its event streams to the
    # garbage collector, of which trio warns.
    return "asyncio"


async def test_a_server_over_http_answers(opened: Opener) -> None:
    seen = []

    async def receive(done: float, _total: float | None, _message: str | None) -> None:
        seen.append(done)

    environ = ENVIRON | {"TOKEN": "s3cret-token"}
    with http_server("s3cret-token", ENVIRON) as endpoint:
        bearer = {"Authorization": "Bearer ${TOKEN}"}
        async with opened(
            http_definition("s", endpoint, bearer),
            http_definition("stranger", endpoint),
            http_definition("lost", f"{endpoint}/astray", bearer),
            environ=environ,
        ) as servers:
            assert servers.problems() == {
                "stranger": "HTTP 401 Unauthorized",
                "lost": "HTTP 404 Not Found",
            }
            assert len(servers.tools("s")) == 15
            await servers.call(ToolRef("s", "progress"), {}, {}, receive)
            await until(lambda: len(seen) == 3)
            outcome = await call(servers, "structured", {"broken": True})
            assert isinstance(outcome, Completed)
            assert outcome.result.fields["structuredContent"] == {"n": "three"}
            with pytest.raises(ServerProtocolError) as caught:
                await call(servers, "raise", {"data": {"k": 1}})
            assert (caught.value.code, caught.value.data) == (-32050, ({"k": 1},))


async def test_a_call_given_up_over_http_is_cancelled_at_the_server(
    opened: Opener, tmp_path: Path
) -> None:
    file = tmp_path / "calls"
    with http_server(env=ENVIRON | {"CALLS_FILE": str(file)}) as endpoint:
        async with opened(http_definition("s", endpoint)) as servers:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call, servers, "slow")
                await until(lambda: len(calls(file)) == 1)
                tasks.cancel_scope.cancel()
            await until(lambda: len(calls(Path(f"{file}.cancelled"))) == 1)


async def test_an_http_server_that_dies_in_a_call_is_unavailable(
    opened: Opener, tmp_path: Path
) -> None:
    with http_server(env=ENVIRON) as endpoint:
        async with opened(http_definition("s", endpoint)) as servers:
            # Before or after the head of its answer: both happen.
            ends = ("no answer over HTTP: ", "SSE stream ended")
            assert (await detail(call(servers, "die"))).startswith(ends)
            assert (await detail(call(servers, "echo"))).startswith("no answer over HTTP: ")


# What an endpoint may do wrong.


async def failure(servers: RunningServers, tool: str) -> str:
    with pytest.raises((ServerUnavailableError, ServerProtocolError)) as caught:
        await call(servers, tool)
    return str(caught.value)


@pytest.mark.parametrize("modern", [False, True])
async def test_a_bad_answer_fails_its_call_and_nothing_else(
    modern: bool, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seriatim.runtime.servers.endpoint.LARGEST_ANSWER", 100_000)
    results = []

    async def ask_slowly(servers: RunningServers) -> None:
        results.append(text(await call(servers, "slow")))

    async with (
        raw_endpoint(modern=modern) as endpoint,
        opened(http_definition("s", endpoint.url)) as servers,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(ask_slowly, servers)
        await endpoint.started.wait()
        with anyio.fail_after(PLENTY):
            failures = {
                tool: await failure(servers, tool) for tool in (*FAULTS, "oversized", "bomb")
            }
            assert text(await call(servers, "good")) == "well"
        endpoint.go.set()
    assert results == ["well"]
    assert opened.news == []
    assert failures["oversized"] == "the answer has more than 100000 bytes (code -32603)"
    assert failures["bomb"] == failures["oversized"]
    assert failures["wrong type"] == "the answer is no MCP but text/html (code -32603)"
    assert failures["no JSON"] == "the answer is no valid JSON-RPC message (code -32603)"
    assert failures["another's"] == "the answer is for another request (code -32603)"
    assert failures["dropped"].startswith("server s is not available: no answer over HTTP: ")
    assert endpoint.opened == (0 if modern else 1)


async def test_a_forgotten_session_is_opened_anew(opened: Opener) -> None:
    async with (
        raw_endpoint(modern=False) as endpoint,
        opened(http_definition("s", endpoint.url)) as servers,
    ):
        endpoint.sessions.clear()
        assert await detail(call(servers, "good")) == "has forgotten the session"
        assert text(await call(servers, "good")) == "well"
        assert endpoint.opened == 2
    lost = ServerLost("s", "has forgotten the session", retried=True)
    assert opened.news == [lost, ServerBack("s")]


async def test_an_endpoint_that_is_gone_is_told_of_and_found_again(
    opened: Opener, tmp_path: Path
) -> None:
    env = ENVIRON | {"CALLS_FILE": str(tmp_path / "calls")}
    with http_server(env=env) as endpoint:
        async with opened(http_definition("s", endpoint)) as servers:
            await detail(call(servers, "die"))
            await until(lambda: len(opened.news) == 1)
            [news] = opened.news
            assert isinstance(news, ServerLost)
            assert news.detail.startswith("no answer over HTTP: ")
            with anyio.fail_after(PLENTY):
                await detail(call(servers, "echo"))
            port = endpoint.rpartition(":")[2].partition("/")[0]
            with http_server(env=env, port=port) as again:
                assert again == endpoint
                await until(lambda: opened.news[1:] == [ServerBack("s")])
                assert text(await call(servers, "list_conventions")) == "console, card"
