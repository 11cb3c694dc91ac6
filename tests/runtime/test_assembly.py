"""The order of the chain, shown by what each place sees of a call."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import seriatim.runtime.assembly
from interceptors import AuditRecord, MemoryAuditSink
from tests.support.executors import EXECUTORS, Reply, ask, gate_workspace, opened, reached

pytestmark = pytest.mark.anyio

# Counts what it sees in a file, so that a test in another process could read it too.
SEEN = """\
from pathlib import Path


class Seen:
    def __init__(self, file: str) -> None:
        self.file = Path(file)

    async def __call__(self, call, proceed, /):
        outcome = await proceed(call)
        with self.file.open("a") as file:
            file.write(f"{call.skill} {type(outcome).__name__}\\n")
        return outcome


class Raises:
    async def __call__(self, call, proceed, /):
        raise RuntimeError("the shop is shut")


class RaisesAfter:
    async def __call__(self, call, proceed, /):
        await proceed(call)
        raise RuntimeError("the shop is shut")


class Hides:
    async def __call__(self, call, proceed, /):
        from interceptors import Failed, Raised
        await proceed(call)
        return Failed(Raised("hides", "the result is withheld"))
"""
RULES = {"get": ["list"]}


def workspace(directory: Path, *interceptors: dict[str, Any], **settings: Any) -> Path:
    file = gate_workspace(directory, RULES)
    (directory / "watchers.py").write_text(SEEN)
    content = yaml.safe_load(file.read_text())
    content["seriatim"] = {"interceptors": list(interceptors), **settings}
    file.write_text(yaml.safe_dump(content, sort_keys=False))
    return file


def watcher(directory: Path, position: str) -> dict[str, Any]:
    return {
        "use": "watchers:Seen",
        "position": position,
        "settings": {"file": str(directory / position)},
    }


@pytest.fixture(autouse=True)
def _fresh_module() -> Any:
    import sys  # noqa: PLC0415  each test writes the module anew, in a directory of its own

    path = sys.path[:]
    yield
    sys.modules.pop("watchers", None)
    sys.path[:] = path


async def test_outer_interceptors_see_refusals_and_inner_ones_do_not(tmp_path: Path) -> None:
    file = workspace(tmp_path, watcher(tmp_path, "outer"), watcher(tmp_path, "inner"))
    async with (
        opened(file, MemoryAuditSink()) as run,
        EXECUTORS["gateway-modern"](run, "builder") as agent,
    ):
        await ask(agent, "get")
        await ask(agent, "list")
    assert (tmp_path / "outer").read_text() == "get Refused\nlist Completed\n"
    assert (tmp_path / "inner").read_text() == "list Completed\n"


@pytest.mark.parametrize("position", ["outer", "inner"])
async def test_one_that_raises_before_it_proceeds_refuses_and_is_on_record(
    tmp_path: Path, position: str
) -> None:
    audit = MemoryAuditSink()
    file = workspace(tmp_path, {"use": "watchers:Raises", "position": position})
    async with (
        opened(file, audit) as run,
        EXECUTORS["gateway-modern"](run, "builder") as agent,
    ):
        reply = await ask(agent, "list")
    assert reply == Reply(
        "list was not run: the gate could not decide (interceptor watchers:Raises failed: it "
        "raised RuntimeError: the shop is shut). Tell the operator.",
        is_error=True,
    )
    [row] = audit.records
    assert (row.policy_decision, row.rule, row.reason) == ("deny", "gate", reply.text)
    assert reached(tmp_path) == []


@pytest.mark.parametrize("position", ["outer", "inner"])
@pytest.mark.parametrize("use", ["watchers:RaisesAfter", "watchers:Hides"])
async def test_a_result_that_an_interceptor_keeps_from_the_agent_unlocks_nothing(
    tmp_path: Path, position: str, use: str
) -> None:
    audit = MemoryAuditSink()
    file = workspace(tmp_path, {"use": use, "position": position})
    async with (
        opened(file, audit) as run,
        EXECUTORS["gateway-modern"](run, "builder") as agent,
    ):
        assert (await ask(agent, "list")).is_error
        refused = await ask(agent, "get")
    assert "list, which was called but did not succeed" in refused.text
    assert [row.outcome for row in audit.records] == ["failed", "refused"]
    assert reached(tmp_path) == ["list_conventions"]


class Down(MemoryAuditSink):
    """An audit log that cannot be written."""

    async def ready(self) -> None:
        raise OSError("disk full")

    async def write(self, record: AuditRecord) -> None:
        raise OSError("disk full")


async def test_nothing_reaches_a_server_while_the_audit_log_is_down(tmp_path: Path) -> None:
    async with (
        opened(workspace(tmp_path), Down()) as run,
        EXECUTORS["gateway-modern"](run, "builder") as agent,
    ):
        assert await ask(agent, "list") == Reply(
            "list was not run: the gate could not decide (audit log unavailable). "
            "Tell the operator.",
            is_error=True,
        )
    assert reached(tmp_path) == []


async def test_calls_pass_while_the_audit_log_is_down_where_the_settings_say_so(
    tmp_path: Path,
) -> None:
    async with (
        opened(workspace(tmp_path, fail="open"), Down()) as run,
        EXECUTORS["gateway-modern"](run, "builder") as agent,
    ):
        assert not (await ask(agent, "list")).is_error


async def test_nothing_of_telemetry_is_composed_while_it_is_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(*_: object, **__: object) -> None:
        raise AssertionError("telemetry is off")

    for name in (
        "TracingInterceptor",
        "RecoveryInterceptor",
        "MetricsInterceptor",
        "ExecutionTimer",
        "current_trace",
    ):
        monkeypatch.setattr(seriatim.runtime.assembly, name, absent)
    async with (
        opened(workspace(tmp_path), MemoryAuditSink()) as run,
        EXECUTORS["gateway-modern"](run, "builder") as agent,
    ):
        assert not (await ask(agent, "list")).is_error
