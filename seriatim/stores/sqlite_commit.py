"""One connection to a log, by which rows are committed; belongs to the thread that opened it."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from seriatim.stores.errors import AuditStoreError, explained
from seriatim.stores.rows import Row
from seriatim.stores.schema import INSERT, PROBE, open_beside, open_for_writing


class LogConnection:
    """Commits rows to the log that stood at `path` when it was opened."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path: Final = path
        self._connection: Final = connection
        self._made: Final = _identity(path)

    @classmethod
    def patient(cls, path: Path) -> "LogConnection":
        """Open the log, made if need be; waits for other processes' locks, and for the disk.

        Raises:
            AuditStoreError, sqlite3.Error, OSError: see `open_for_writing`.
        """
        return cls(path, open_for_writing(path))

    @classmethod
    def prompt(cls, path: Path) -> "LogConnection":
        """Open a log that is open already; waits for nobody's lock.

        Raises:
            AuditStoreError: when it cannot be used at all.
        """
        try:
            return cls(path, open_beside(path))
        except (sqlite3.Error, OSError) as error:
            raise explained(path, error) from error

    def commit(self, rows: Sequence[Row]) -> None:
        """Commit `rows` in one transaction; without any, prove that a row could be.

        Raises:
            AuditStoreError: when another file has taken the log's place.
            sqlite3.Error, OSError: when they are not committed.
        """
        # SQLite goes on writing to a deleted file without a word.
        if _identity(self._path) != self._made:
            raise AuditStoreError(f"the audit log `{self._path}` was replaced")
        with self._connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            if rows:
                connection.executemany(INSERT, rows)
            else:
                connection.execute(PROBE)

    def close(self) -> None:
        self._connection.close()


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino
