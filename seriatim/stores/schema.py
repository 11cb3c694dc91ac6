"""The SQLite schema of the audit log, and what a file must be to hold it."""

import sqlite3
import time
from pathlib import Path
from typing import Final

from seriatim.stores.errors import ELSEWHERE, AuditStoreError
from seriatim.stores.rows import COLUMNS

VERSION: Final = 1
APPLICATION: Final = 0x53657269
"""`PRAGMA application_id` of our files: "Seri"."""
PATIENCE: Final = 2.0
"""Seconds to wait for another process's lock; it holds it for the length of one commit."""

_VALUES: Final = ", ".join("?" * len(COLUMNS))
INSERT: Final = f"INSERT INTO audit VALUES ({_VALUES})"  # noqa: S608  question marks only
PROBE: Final = f"PRAGMA user_version = {VERSION}"
"""Writes the first page again: the smallest commit that meets a full disk or a lost lock."""

_CREATE: Final = (
    """
    CREATE TABLE audit (
        event_type TEXT NOT NULL,
        event_id TEXT NOT NULL,
        decision_id TEXT NOT NULL,
        time TEXT NOT NULL,
        run TEXT NOT NULL,
        topology TEXT NOT NULL,
        agent TEXT NOT NULL,
        skill TEXT NOT NULL,
        server TEXT,
        tool TEXT,
        via TEXT NOT NULL,
        call_id TEXT NOT NULL,
        policy_decision TEXT NOT NULL,
        rule TEXT,
        reason TEXT,
        missing TEXT NOT NULL,
        outcome TEXT NOT NULL,
        error_kind TEXT,
        duration REAL NOT NULL,
        inputs TEXT NOT NULL,
        output TEXT,
        trace_id TEXT,
        span_id TEXT
    )
    """,
    "CREATE INDEX audit_by_run ON audit (run, time)",
    "CREATE INDEX audit_by_time ON audit (time)",
    """
    CREATE TRIGGER audit_rows_do_not_change BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END
    """,
    """
    CREATE TRIGGER audit_rows_do_not_go BEFORE DELETE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END
    """,
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Open the log at `path` for the calling thread, and create what is not there yet.

    Raises:
        AuditStoreError: when the file is something else, or of a newer version.
        sqlite3.Error: when it cannot be used at all.
        OSError: when its directory cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # What agents send and tools answer is for the user alone; SQLite gives its other files the
    # mode of this one.
    if not path.exists():
        path.touch(mode=0o600)
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    try:
        if not is_made(connection, path):
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                # Asked again under the lock: another process may have made it meanwhile.
                if not _is_made(connection, path):
                    for statement in _CREATE:
                        connection.execute(statement)
        _log_ahead(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def open_beside(path: Path) -> sqlite3.Connection:
    """Open a log that this process has open, for a thread that may wait for nothing.

    Its commits are writes to the end of the write-ahead log. What waits for the disk, carrying that
    log over into the file, is left to the connection of `open_for_writing`.
    """
    connection = sqlite3.connect(path, timeout=0, isolation_level=None)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    return connection


def is_made(connection: sqlite3.Connection, path: Path) -> bool:
    """Return whether the database holds an audit log of ours; it does not when it is empty.

    Raises:
        AuditStoreError: when it holds anything else.
    """
    with connection:
        # One view of the file: another process may make the log between two looks at it.
        connection.execute("BEGIN")
        return _is_made(connection, path)


def _is_made(connection: sqlite3.Connection, path: Path) -> bool:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (objects,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if (application, version, objects) == (0, 0, 0):
        return False
    if application != APPLICATION:
        raise AuditStoreError(f"the database `{path}` is no audit log of seriatim", ELSEWHERE)
    if version > VERSION:
        raise AuditStoreError(
            f"the audit log `{path}` is of version {version}, and this seriatim knows {VERSION}",
            f"upgrade seriatim, or {ELSEWHERE}",
        )
    names = tuple(
        name for (name,) in connection.execute("SELECT name FROM pragma_table_info('audit')")
    )
    if names != COLUMNS:
        raise AuditStoreError(f"the audit log `{path}` is damaged: its columns are not ours")
    return True


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Turn write-ahead logging on: readers and the writer do not wait for one another.

    A commit is then one write to the log's end. `synchronous = NORMAL` leaves that write to the
    operating system: a committed row survives the death of the process, `kill -9` included. A power
    cut may take the rows of the last moments, and never damages the file. `FULL` would keep those
    rows too, for a wait on the disk before every outcome that an agent sees.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:
            # SQLite does not wait here by itself when two processes make the same file at once.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    connection.execute("PRAGMA synchronous = NORMAL")
