"""What every audit sink does, the one in memory and those that last."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import anyio
import pytest

from interceptors import (
    UNKNOWN_TO_ALL,
    AgentId,
    AuditInterceptor,
    AuditRecord,
    AuditSink,
    CallId,
    DecisionId,
    MemoryAuditSink,
    Outcome,
    Redactor,
    RunId,
    Scope,
    SkillId,
    ToolCall,
    ToolRef,
    Via,
)
from seriatim.stores.audit_log import open_audit_log
from seriatim.stores.sqlite import open_sqlite_audit
from tests.support.records import COMPLETED, FAILED, REFUSED, fresh

pytestmark = pytest.mark.anyio

Opened: TypeAlias = tuple[AuditSink, Callable[[], list[AuditRecord]]]
"""A sink, and what reads its rows back."""


@asynccontextmanager
async def in_memory(_directory: Path) -> AsyncIterator[Opened]:
    sink = MemoryAuditSink()
    yield sink, lambda: sink.records


@asynccontextmanager
async def in_sqlite(directory: Path) -> AsyncIterator[Opened]:
    path = directory / "audit.sqlite3"

    def read() -> list[AuditRecord]:
        with open_audit_log(path) as log:
            return log.records({}, until=log.end())

    async with open_sqlite_audit(path) as sink:
        yield sink, read


@pytest.fixture(params=[in_memory, in_sqlite])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> AbstractAsyncContextManager[Opened]:
    opened: AbstractAsyncContextManager[Opened] = request.param(tmp_path)
    return opened


async def test_a_row_is_there_when_write_returns(
    store: AbstractAsyncContextManager[Opened],
) -> None:
    async with store as (sink, read):
        await sink.ready()
        await sink.write(COMPLETED)
        assert read() == [COMPLETED]


async def test_every_kind_of_row_comes_back_as_it_was(
    store: AbstractAsyncContextManager[Opened],
) -> None:
    async with store as (sink, read):
        for record in (COMPLETED, REFUSED, FAILED):
            await sink.write(record)
        assert read() == [COMPLETED, REFUSED, FAILED]


async def test_ready_leaves_no_row(store: AbstractAsyncContextManager[Opened]) -> None:
    async with store as (sink, read):
        await sink.ready()
        assert read() == []


async def test_a_thousand_concurrent_writes_leave_a_thousand_rows(
    store: AbstractAsyncContextManager[Opened],
) -> None:
    records = [fresh(call_id=f"call-{number}") for number in range(1000)]
    async with store as (sink, read):
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                for record in records:
                    tasks.start_soon(sink.write, record)
        assert {record.event_id for record in read()} == {record.event_id for record in records}
        assert len(read()) == len(records)


async def test_a_cancelled_call_leaves_its_row(
    store: AbstractAsyncContextManager[Opened],
) -> None:
    """Through the interceptor, which is what shields the write."""
    reached = anyio.Event()

    async def never(_call: ToolCall) -> Outcome:
        reached.set()
        await anyio.sleep_forever()
        raise AssertionError

    async with store as (sink, read):
        audit = AuditInterceptor(sink, "t", Redactor(), hidden={})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(audit, _call(), never)
            await reached.wait()
            tasks.cancel_scope.cancel()
        assert [(row.outcome, row.error_kind) for row in read()] == [("failed", "cancelled")]


def _call() -> ToolCall:
    return ToolCall(
        id=CallId("call-1"),
        decision=DecisionId("decision-1"),
        scope=Scope(RunId("run-1"), AgentId("planner")),
        skill=SkillId("list-build-conventions"),
        tool=ToolRef("warehouse", "list_build_conventions"),
        arguments={},
        via=Via.MODEL,
        standing=UNKNOWN_TO_ALL,
    )
