"""What only a log in a file can meet: other processes, other files, locks and full disks."""

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from interceptors import AuditRecord, AuditSink
from seriatim.stores.audit_log import open_audit_log
from seriatim.stores.errors import AuditStoreError
from seriatim.stores.rows import COLUMNS
from seriatim.stores.schema import PATIENCE, VERSION, open_for_writing
from seriatim.stores.sqlite import open_sqlite_audit
from seriatim.stores.sqlite_writer import SqliteWriter
from tests.support.records import COMPLETED, fresh

pytestmark = pytest.mark.anyio

WRITER = """
import sys
from pathlib import Path
import anyio
from seriatim.stores.sqlite import open_sqlite_audit
from tests.support.records import fresh

async def main(path, run, count):
    async with open_sqlite_audit(path) as sink:
        for number in range(count):
            await sink.write(fresh(run=run, call_id=f"call-{number}"))
        print("written", flush=True)
        if sys.argv[4] == "stay":
            await anyio.sleep_forever()

anyio.run(main, Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
"""

FULL_DISK = """
import resource, sys
from pathlib import Path
import anyio
from seriatim.stores.errors import AuditStoreError
from seriatim.stores.sqlite import open_sqlite_audit
from tests.support.records import fresh

async def main(path):
    async with open_sqlite_audit(path) as sink:
        await sink.ready()
        size = path.with_name(path.name + "-wal").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        for attempt in (sink.ready(), sink.write(fresh())):
            try:
                await attempt
            except AuditStoreError as error:
                print("refused", flush=True)

anyio.run(main, Path(sys.argv[1]))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "workspace" / ".seriatim" / "audit.sqlite3"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> float:
    """Shorten the wait for a lock, to spare the time of those who run the tests."""
    monkeypatch.setattr("seriatim.stores.schema.PATIENCE", 0.2)
    return 0.2


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)], stdout=subprocess.PIPE, text=True
    )


def rows(path: Path) -> list[AuditRecord]:
    with open_audit_log(path) as log:
        return log.records({}, until=log.end())


def forbid_writing(path: Path) -> None:
    path.chmod(0o400)


def replace(path: Path) -> None:
    path.rename(path.with_name("aside"))
    path.touch()


async def refusal_of(sink: AuditSink) -> str:
    with pytest.raises(AuditStoreError) as raised:
        await sink.ready()
    return raised.value.message


def test_several_processes_that_make_and_fill_one_log_lose_nothing(path: Path) -> None:
    writers = [start(WRITER, path, f"run-{number}", 100, "leave") for number in range(4)]
    assert [writer.communicate(timeout=50)[0] for writer in writers] == ["written\n"] * 4
    written = [(record.run, record.call_id) for record in rows(path)]
    assert sorted(written) == sorted(
        (f"run-{run}", f"call-{call}") for run in range(4) for call in range(100)
    )


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_row_survives_kill_9_once_write_has_returned(path: Path) -> None:
    with start(WRITER, path, "run-1", 3, "stay") as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "written\n"
        writer.send_signal(signal.SIGKILL)
    assert [record.call_id for record in rows(path)] == ["call-0", "call-1", "call-2"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs setrlimit")
def test_a_disk_that_is_full_refuses_both_the_question_and_the_row(path: Path) -> None:
    with start(FULL_DISK, path) as process:
        assert process.communicate(timeout=30)[0] == "refused\nrefused\n"


async def test_the_log_and_the_files_beside_it_are_for_its_user_alone(path: Path) -> None:
    async with open_sqlite_audit(path) as sink:
        await sink.write(COMPLETED)
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert {name.removeprefix(path.name) for name in modes} >= {"", "-wal"}
    assert set(modes.values()) == {0o600}


async def test_a_locked_log_is_not_ready_and_says_so_in_bounded_time(
    path: Path, impatient: float
) -> None:
    async with open_sqlite_audit(path) as sink:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with anyio.fail_after(impatient + 2):
                assert (
                    await refusal_of(sink) == f"the audit log `{path}` is locked by another process"
                )
            other.execute("ROLLBACK")
        await sink.ready()


async def test_the_event_loop_runs_on_while_the_log_is_locked(path: Path) -> None:
    async with open_sqlite_audit(path) as sink:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(sink.write, COMPLETED)
                await anyio.wait_all_tasks_blocked()
                other.execute("ROLLBACK")  # reached only if nobody holds the loop
    assert rows(path) == [COMPLETED]


async def test_a_commit_waits_for_nothing_while_nobody_holds_the_lock(path: Path) -> None:
    async with open_sqlite_audit(path) as sink:
        await sink.ready()
        # Run to its end by hand: whatever waits would have to yield.
        with pytest.raises(StopIteration):
            sink.write(COMPLETED).send(None)
    assert rows(path) == [COMPLETED]


async def test_the_write_ahead_log_is_carried_over_while_calls_go_on(path: Path) -> None:
    async with open_sqlite_audit(path) as sink:
        for _ in range(2_000):
            await sink.ready()
            await sink.write(COMPLETED)
        written = path.with_name(f"{path.name}-wal").stat().st_size
    # A call takes four pages of 4 KiB: 32 MB if nothing were carried over.
    assert written < 10_000_000
    assert len(rows(path)) == 2_000


async def test_a_locked_log_does_not_open(path: Path, impatient: float) -> None:
    async with open_sqlite_audit(path):
        pass
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with anyio.fail_after(2 * impatient + 2):
            with pytest.raises(AuditStoreError, match="locked by another process"):
                async with open_sqlite_audit(path):
                    pass


async def test_concurrent_questions_about_a_locked_log_are_answered_together(
    path: Path, impatient: float
) -> None:
    async with open_sqlite_audit(path) as sink:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            # The first waits alone; the other nineteen gather behind it.
            with anyio.fail_after(2 * impatient + 2):
                async with anyio.create_task_group() as tasks:
                    for _ in range(20):
                        tasks.start_soon(refusal_of, sink)


async def test_a_deleted_log_is_not_ready(path: Path) -> None:
    async with open_sqlite_audit(path) as sink:
        await sink.write(COMPLETED)
        shutil.rmtree(path.parent)
        assert await refusal_of(sink) == (
            f"cannot use the audit log `{path}`: no such file or directory"
        )
        with pytest.raises(AuditStoreError):
            await sink.write(COMPLETED)


async def test_a_replaced_log_is_not_ready(path: Path) -> None:
    async with open_sqlite_audit(path) as sink:
        replace(path)
        assert await refusal_of(sink) == f"the audit log `{path}` was replaced"


async def test_a_writer_that_is_cancelled_while_it_waits_leaves_its_row(path: Path) -> None:
    async with open_sqlite_audit(path) as sink:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(sink.write, fresh(call_id="cancelled"))
                await anyio.wait_all_tasks_blocked()
                tasks.cancel_scope.cancel()
            other.execute("ROLLBACK")
        await sink.write(fresh(call_id="next"))
    assert [record.call_id for record in rows(path)] == ["cancelled", "next"]


async def test_closing_commits_what_is_queued(path: Path) -> None:
    async with open_sqlite_audit(path) as sink, anyio.create_task_group() as tasks:
        for _ in range(100):
            tasks.start_soon(sink.write, fresh())
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert len(rows(path)) == 100


async def test_a_cancelled_scope_closes_the_log_all_the_same(path: Path) -> None:
    with anyio.CancelScope() as scope:
        async with open_sqlite_audit(path) as sink:
            await sink.write(COMPLETED)
            scope.cancel()
    # The last to close a log clears its sidecars away.
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert rows(path) == [COMPLETED]


async def test_closing_does_not_wait_for_ever(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seriatim.stores.sqlite_writer.CLOSING", 0.1)
    async with open_sqlite_audit(path) as sink:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sink.write, COMPLETED)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        started = time.monotonic()
    assert time.monotonic() - started < PATIENCE / 2
    other.close()


async def test_a_closed_log_takes_no_rows(path: Path) -> None:
    async with open_sqlite_audit(path) as sink:
        pass
    assert await refusal_of(sink) == f"the audit log `{path}` is closed"


async def test_an_exception_leaves_the_log_as_it_is(path: Path) -> None:
    async def write_and_fail() -> None:
        async with open_sqlite_audit(path) as sink:
            await sink.write(COMPLETED)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await write_and_fail()
    assert rows(path) == [COMPLETED]


@pytest.mark.parametrize(
    "statement", ["UPDATE audit SET outcome = 'completed'", "DELETE FROM audit"]
)
async def test_rows_neither_change_nor_go(path: Path, statement: str) -> None:
    async with open_sqlite_audit(path) as sink:
        await sink.write(COMPLETED)
    with (
        closing(sqlite3.connect(path)) as other,
        pytest.raises(sqlite3.IntegrityError, match="append-only"),
    ):
        other.execute(statement)


async def test_the_columns_are_the_fields_of_a_record(path: Path) -> None:
    async with open_sqlite_audit(path):
        pass
    with closing(sqlite3.connect(path)) as other:
        found = tuple(row[1] for row in other.execute("PRAGMA table_info(audit)"))
        assert found == COLUMNS
        assert other.execute("PRAGMA user_version").fetchone() == (VERSION,)
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)


async def test_a_log_that_is_there_is_continued(path: Path) -> None:
    for _ in range(2):
        async with open_sqlite_audit(path) as sink:
            await sink.write(fresh())
    assert len(rows(path)) == 2


def make_text(path: Path) -> None:
    path.write_text("this is no database, whatever its name says" * 100)


def make_foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE audit (something)")


def make_newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA application_id = {0x53657269}")
        other.execute(f"PRAGMA user_version = {VERSION + 1}")


def make_directory(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (make_text, "is no SQLite database"),
        (make_foreign, "is no audit log of seriatim"),
        (make_newer, f"is of version {VERSION + 1}, and this seriatim knows {VERSION}"),
        (make_directory, "is a directory"),
    ],
)
async def test_a_file_that_is_no_log_of_ours_is_left_alone(
    tmp_path: Path, make: Callable[[Path], None], message: str
) -> None:
    path = tmp_path / "audit.sqlite3"
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(AuditStoreError, match=message):
        async with open_sqlite_audit(path):
            pass
    with pytest.raises(AuditStoreError, match=message), open_audit_log(path):
        pass
    assert (path.read_bytes() if path.is_file() else b"") == before


async def test_a_file_in_place_of_the_directory_is_explained(tmp_path: Path) -> None:
    (tmp_path / ".seriatim").touch()
    with pytest.raises(AuditStoreError, match="cannot use the audit log"):
        async with open_sqlite_audit(tmp_path / ".seriatim" / "audit.sqlite3"):
            pass


async def test_a_batch_that_fails_gives_each_caller_an_error_of_its_own(path: Path) -> None:
    errors: list[AuditStoreError] = []

    async def ask(writer: SqliteWriter) -> None:
        try:
            await writer.commit(("too", "few"))
        except AuditStoreError as error:
            errors.append(error)

    writer = SqliteWriter(path)
    await writer.start()
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(ask, writer)
    await writer.close()
    assert len({id(error) for error in errors}) == 5


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
async def test_a_read_only_log_does_not_open(path: Path) -> None:
    with closing(open_for_writing(path)):
        forbid_writing(path)
    with pytest.raises(AuditStoreError, match="read-only"):
        async with open_sqlite_audit(path):
            pass
