"""Servers over streamable HTTP, on real sockets."""

from pathlib import Path

import anyio
import pytest

from interceptors import Completed, ServerProtocolError, ToolRef
from tests.support.mcp_servers import calls, http_definition, http_server
from tests.support.running_servers import ENVIRON, Opener, call, detail, until

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
