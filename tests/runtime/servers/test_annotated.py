"""The tier `readonly` where only the server knows whether a tool changes anything."""

import os
import signal
import sys
from pathlib import Path

import pytest
import yaml

from interceptors import MemoryAuditSink
from tests.support.executors import EXECUTORS, Executor, ask, gate_workspace, opened, reached
from tests.support.mcp_servers import SERVERS
from tests.support.running_servers import until

pytestmark = pytest.mark.anyio

READONLY = "fail is not permitted for this agent (server counting is readonly)"


def readonly_workspace(directory: Path) -> Path:
    """Write a workspace whose server starts once the file `gate` is there."""
    file = gate_workspace(directory, {})
    content = yaml.safe_load(file.read_text())
    [server] = content["mcp_servers"]
    program = f'test -e {directory}/gate || exit 3; echo $$ > {directory}/pid; exec "$0" "$@"'
    server["command"] = ["sh", "-c", program, sys.executable, str(SERVERS / "counting.py")]
    server["permission"] = "readonly"
    file.write_text(yaml.safe_dump(content, sort_keys=False))
    return file


@pytest.mark.parametrize("executor", EXECUTORS)
async def test_a_call_fails_while_the_server_has_never_said_and_is_judged_once_it_has(
    executor: str, tmp_path: Path
) -> None:
    audit = MemoryAuditSink()
    async with (
        opened(readonly_workspace(tmp_path), audit) as run,
        EXECUTORS[executor](run, "builder") as agent,
    ):
        for skill in ("list", "fail"):
            reply = await ask(agent, skill)
            unavailable = "server counting is not available (exited with code 3)"
            assert reply.text == f"{skill} failed: {unavailable}."
        assert [row.error_kind for row in audit.records] == ["server_unavailable"] * 2
        (tmp_path / "gate").touch()
        await until(lambda: not run.servers.problems())
        await _judged(agent)
        # What it said it has said, though it is away.
        (tmp_path / "gate").unlink()
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        await until(lambda: bool(run.servers.problems()))
        assert (await ask(agent, "fail")).text.startswith(READONLY)
    assert reached(tmp_path) == ["list_conventions"]


async def _judged(agent: Executor) -> None:
    assert not (await ask(agent, "list")).is_error
    assert (await ask(agent, "fail")).text.startswith(READONLY)
