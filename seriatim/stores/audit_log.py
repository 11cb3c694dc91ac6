"""The reading side of the audit log. Never makes the file, and never writes to it."""

import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from interceptors import AuditRecord
from seriatim.stores.errors import AuditStoreError, NoAuditLogError, explained
from seriatim.stores.rows import COLUMNS, from_row, storable
from seriatim.stores.schema import PATIENCE, is_made

Criterion: TypeAlias = Literal["run", "agent", "skill", "policy_decision"]
Criteria: TypeAlias = Mapping[Criterion, str]
"""What rows must say in which columns; all of it, and nothing of the columns left out."""

ALL: Final = -1
"""No limit, as SQLite says it."""
INTERVAL: Final = 0.2
"""Seconds between two looks at a log that is followed."""

_COLUMNS: Final = ", ".join(COLUMNS)


class AuditReader:
    """Reads one log while others write to it; made by `open_audit_log`.

    Every method raises `AuditStoreError` when the file cannot be read.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection: Final = connection
        self.path: Final = path

    def newest_run(self) -> tuple[str, ...]:
        """Return the run whose first row is the latest, in a tuple of one, or nothing."""
        found = self._rows(
            "SELECT run FROM audit GROUP BY run ORDER BY min(time) DESC, min(rowid) DESC LIMIT 1"
        )
        return tuple(run for (run,) in found)

    def has_run(self, run: str) -> bool:
        """Return whether `run` has any row."""
        return bool(self._rows("SELECT 1 FROM audit WHERE run = ? LIMIT 1", storable(run)))

    def end(self) -> int:
        """Return the position of the row that was committed last."""
        [(position,)] = self._rows("SELECT coalesce(max(rowid), 0) FROM audit")
        return int(position)

    def records(self, criteria: Criteria, *, until: int, newest: int = ALL) -> list[AuditRecord]:
        """Return the matching rows up to the position `until`, the call issued first coming first.

        Args:
            newest: how many of the latest are wanted.
        """
        found = self._rows(
            f"SELECT {_COLUMNS} FROM audit WHERE rowid <= ? {_and(criteria)}"  # noqa: S608  constants only
            " ORDER BY time DESC, rowid DESC LIMIT ?",
            until,
            *map(storable, criteria.values()),
            newest,
        )
        return [self._record(row) for row in reversed(found)]

    def follow(
        self, criteria: Criteria, *, after: int, interval: float = INTERVAL
    ) -> Iterator[list[AuditRecord]]:
        """Yield the matching rows behind the position `after` as they come, without end."""
        while True:
            # Only what lay there at this look, so that no row is seen twice or passed over.
            end = self.end()
            found = self._rows(
                f"SELECT {_COLUMNS} FROM audit WHERE rowid > ? AND rowid <= ? {_and(criteria)}"  # noqa: S608  constants only
                " ORDER BY rowid",
                after,
                end,
                *map(storable, criteria.values()),
            )
            after = end
            if found:
                yield [self._record(row) for row in found]
            time.sleep(interval)

    def _rows(self, statement: str, *values: str | int) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise explained(self.path, error) from error

    def _record(self, row: tuple[Any, ...]) -> AuditRecord:
        try:
            return from_row(row)
        except (TypeError, ValueError) as error:
            raise AuditStoreError(f"the audit log `{self.path}` holds a broken row") from error


@contextmanager
def open_audit_log(path: Path) -> Iterator[AuditReader]:
    """Open the log at `path` for reading, for the calling thread.

    Raises:
        NoAuditLogError: when there is no file, or an empty one.
        AuditStoreError: when it is no audit log, or cannot be read.
    """
    if not path.exists():
        raise NoAuditLogError(f"there is no audit log yet at `{path}`")
    try:
        connection = _connection(path)
    except sqlite3.Error as error:
        raise explained(path, error) from error
    with closing(connection):
        yield AuditReader(connection, path)


@contextmanager
def await_audit_log(path: Path, interval: float = INTERVAL) -> Iterator[AuditReader]:
    """Open the log at `path` as soon as there is one; raises like `open_audit_log` otherwise."""
    with ExitStack() as stack:
        while True:
            try:
                reader = stack.enter_context(open_audit_log(path))
                break
            except NoAuditLogError:
                time.sleep(interval)
        yield reader


def _connection(path: Path) -> sqlite3.Connection:
    uri = path.absolute().as_uri()
    try:
        return _checked(f"{uri}?mode=ro", path)
    except sqlite3.OperationalError as error:
        # Readers share a file with the writer, and cannot make it in a directory that they may not
        # write to. Without a write-ahead log nobody is writing: the log can be read as it lies.
        written = path.with_name(f"{path.name}-wal").exists()
        barred = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
        if written or not barred or not path.is_file():
            raise
        return _checked(f"{uri}?immutable=1", path)


def _checked(uri: str, path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None)
    try:
        if not is_made(connection, path):
            raise NoAuditLogError(f"the audit log `{path}` has no rows yet")
    except BaseException:
        connection.close()
        raise
    return connection


def _and(criteria: Criteria) -> str:
    return "".join(f" AND {column} = ?" for column in criteria)
