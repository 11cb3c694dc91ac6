import shutil
import sqlite3
import threading
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from interceptors import AuditRecord
from seriatim.stores.audit_log import Criteria, await_audit_log, open_audit_log
from seriatim.stores.errors import AuditStoreError, NoAuditLogError
from seriatim.stores.rows import to_row
from seriatim.stores.schema import INSERT, open_for_writing
from tests.support.records import COMPLETED, REFUSED, fresh


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.sqlite3"


def add(path: Path, *records: AuditRecord) -> None:
    with closing(open_for_writing(path)) as connection:
        connection.executemany(INSERT, map(to_row, records))


def at(second: int, run: str = "run-1") -> AuditRecord:
    return fresh(run=run, time=f"2026-05-09T07:35:{second:02}.000000Z", call_id=f"at {second}")


def calls(path: Path, criteria: Criteria, *, newest: int = -1) -> list[str]:
    with open_audit_log(path) as log:
        return ids(log.records(criteria, until=log.end(), newest=newest))


def ids(records: Iterable[AuditRecord]) -> list[str]:
    return [record.call_id for record in records]


def test_the_newest_run_is_the_one_whose_first_row_is_latest(path: Path) -> None:
    add(path, at(1, "long"), at(2, "short"), at(3, "long"))
    with open_audit_log(path) as log:
        assert log.newest_run() == ("short",)


def test_an_empty_log_has_no_newest_run(path: Path) -> None:
    add(path)
    with open_audit_log(path) as log:
        assert log.newest_run() == ()
        assert log.end() == 0


def test_rows_come_in_the_order_in_which_calls_were_issued(path: Path) -> None:
    add(path, at(3), at(1), at(2))
    assert calls(path, {}) == ["at 1", "at 2", "at 3"]


def test_a_limit_keeps_the_latest_oldest_first(path: Path) -> None:
    add(path, at(3), at(1), at(2))
    assert calls(path, {}, newest=2) == ["at 2", "at 3"]


@pytest.mark.parametrize(
    ("criteria", "expected"),
    [
        ({"run": "run-2"}, ["other run"]),
        ({"agent": "reviewer"}, ["other agent"]),
        ({"skill": REFUSED.skill}, ["refused"]),
        ({"policy_decision": "deny"}, ["refused"]),
        ({"policy_decision": "deny", "agent": "reviewer"}, []),
    ],
)
def test_criteria_choose_rows(path: Path, criteria: Criteria, expected: list[str]) -> None:
    add(
        path,
        fresh(call_id="plain"),
        fresh(REFUSED, call_id="refused"),
        fresh(run="run-2", call_id="other run"),
        fresh(agent="reviewer", call_id="other agent"),
    )
    assert calls(path, criteria) == expected


def test_a_run_is_known_by_its_rows(path: Path) -> None:
    add(path, COMPLETED)
    with open_audit_log(path) as log:
        assert log.has_run("run-1")
        assert not log.has_run("run-2")


def test_following_yields_what_others_append_once_each(path: Path) -> None:
    add(path, at(1))
    with open_audit_log(path) as log:
        followed = log.follow({"run": "run-1"}, after=log.end(), interval=0.001)
        for second in (9, 5, 7):  # also a call that was issued earlier, and took longer
            add(path, at(second, "other run"), at(second))
            assert ids(next(followed)) == [f"at {second}"]


def test_a_log_is_read_while_a_writer_holds_it(path: Path) -> None:
    add(path, COMPLETED)
    with closing(open_for_writing(path)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute(INSERT, to_row(fresh(call_id="not yet")))
        assert calls(path, {}) == ["call-1"]
        writer.execute("COMMIT")
        assert calls(path, {}) == ["call-1", "not yet"]


def test_reading_makes_no_log(path: Path) -> None:
    with pytest.raises(NoAuditLogError), open_audit_log(path):
        pass
    assert not path.exists()


def test_reading_leaves_the_log_as_it_is(path: Path) -> None:
    add(path, COMPLETED)
    before = path.read_bytes()
    assert calls(path, {}) == ["call-1"]
    assert path.read_bytes() == before


def test_a_file_that_is_still_empty_is_no_log_yet(path: Path) -> None:
    path.touch()
    with pytest.raises(NoAuditLogError), open_audit_log(path):
        pass
    assert path.read_bytes() == b""


def test_waiting_ends_when_the_log_is_made(path: Path) -> None:
    maker = threading.Thread(target=add, args=[path, COMPLETED])
    maker.start()
    with await_audit_log(path, interval=0.001) as log:
        assert log.path == path
    maker.join()


def test_waiting_does_not_hide_a_file_that_is_something_else(path: Path) -> None:
    path.write_text("no database" * 1000)
    with pytest.raises(AuditStoreError, match="no SQLite database"), await_audit_log(path):
        pass


def test_a_row_that_somebody_broke_is_explained(path: Path) -> None:
    add(path)
    with closing(sqlite3.connect(path)) as other, other:
        row = list(to_row(COMPLETED))
        row[-4] = "{no json"
        other.execute(INSERT, row)
    with pytest.raises(AuditStoreError, match="broken row"):
        calls(path, {})


def test_a_log_in_a_directory_that_cannot_be_written_is_read(path: Path) -> None:
    add(path, COMPLETED)
    copy = path.parent / "a directory, with 100% odd? name#"
    copy.mkdir()
    shutil.copy(path, copy / path.name)
    copy.chmod(0o500)
    try:
        assert calls(copy / path.name, {}) == ["call-1"]
    finally:
        copy.chmod(0o700)
