"""What a row of the audit log costs: `python benchmarks/audit.py`.

Compares SQLite's own insert and commit with what a call waits for, alone and among 32 at a time.
"""

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import anyio

from interceptors import AuditRecord, AuditSink, new_id
from seriatim.stores.rows import to_row
from seriatim.stores.schema import INSERT, open_for_writing
from seriatim.stores.sqlite import open_sqlite_audit

ROWS = 3200
WRITERS = 32

RECORD = AuditRecord(
    event_type="skill.executed",
    event_id=new_id(),
    decision_id=new_id(),
    time="2026-05-09T07:35:25.123456Z",
    run=new_id(),
    topology="solution-review",
    agent="planner",
    skill="get-build-convention",
    server="warehouse",
    tool="get_build_convention",
    via="model",
    call_id="call_0123456789",
    policy_decision="allow",
    rule=None,
    reason=None,
    missing=(),
    outcome="completed",
    error_kind=None,
    duration=0.0125,
    inputs={"name": "layout", "section": "modules"},
    output="one module a command; " * 20,
    trace_id="0af7651916cd43dd8448eb211c80319c",
    span_id="b7ad6b7169203331",
)


async def bare(connection: sqlite3.Connection, waits: list[float]) -> None:
    row = to_row(RECORD)
    for _ in range(ROWS):
        started = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(INSERT, row)
        connection.execute("COMMIT")
        waits.append(time.perf_counter() - started)


async def write(sink: AuditSink, count: int, waits: list[float]) -> None:
    for _ in range(count):
        started = time.perf_counter()
        await sink.write(RECORD)
        waits.append(time.perf_counter() - started)


async def ask(sink: AuditSink, count: int, waits: list[float]) -> None:
    for _ in range(count):
        started = time.perf_counter()
        await sink.ready()
        waits.append(time.perf_counter() - started)


async def write_together(sink: AuditSink, waits: list[float]) -> None:
    async with anyio.create_task_group() as tasks:
        for _ in range(WRITERS):
            tasks.start_soon(write, sink, ROWS // WRITERS, waits)


async def measure(name: str, work: Callable[[list[float]], Awaitable[None]]) -> None:
    waits: list[float] = []
    started = time.perf_counter()
    await work(waits)
    seconds = time.perf_counter() - started
    p50 = statistics.median(waits) * 1e6
    p99 = statistics.quantiles(waits, n=100)[98] * 1e6
    print(f"{name:<42} p50 {p50:>6.0f} µs   p99 {p99:>6.0f} µs   {len(waits) / seconds:>6.0f}/s")


async def main(directory: Path) -> None:
    with closing(open_for_writing(directory / "bare.sqlite3")) as connection:
        await measure("sqlite3, same thread: insert and commit", partial(bare, connection))
    async with open_sqlite_audit(directory / "audit.sqlite3") as sink:
        await measure("SqliteAudit.ready, one at a time", partial(ask, sink, ROWS))
        await measure("SqliteAudit.write, one at a time", partial(write, sink, ROWS))
        await measure(f"SqliteAudit.write, {WRITERS} at a time", partial(write_together, sink))


with tempfile.TemporaryDirectory() as made:
    anyio.run(main, Path(made))
