"""The audit log in an SQLite file: the default store."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Final

from interceptors import AuditRecord
from seriatim.stores.errors import explained, is_locked
from seriatim.stores.rows import Row, to_row
from seriatim.stores.sqlite_commit import LogConnection
from seriatim.stores.sqlite_writer import SqliteWriter

CARRIED: Final = 250
"""Commits after which the write-ahead log is carried over into the file."""


class SqliteAudit:
    """An `AuditSink`; made by `open_sqlite_audit`. Several processes may write to one file.

    A commit is a write to the end of a file, which takes less than to wake a thread: it is made
    here and now. The writer's thread makes those that would wait for a lock or for the disk, and
    all that come while it is busy.
    """

    def __init__(self, path: Path, here: LogConnection, writer: SqliteWriter) -> None:
        self._path: Final = path
        self._here: Final = here
        self._writer: Final = writer
        self._commits = 0

    async def ready(self) -> None:
        """Return when a row could be committed now.

        Raises:
            AuditStoreError: when the log is locked, read-only, deleted or closed, or the disk full.
        """
        await self._commit()

    async def write(self, record: AuditRecord) -> None:
        """Return when the row is committed; the row of a cancelled caller is committed too.

        Raises:
            AuditStoreError: when it is not.
        """
        await self._commit(to_row(record))

    def waiting(self) -> int:
        return self._writer.waiting()

    async def _commit(self, *rows: Row) -> None:
        self._commits = (self._commits + 1) % CARRIED
        # Two in turn: the first may carry the log over, and the one after that waits for the disk.
        due = self._commits < 2
        if due or not self._writer.idle or not self._committed(rows):
            await self._writer.commit(*rows)

    def _committed(self, rows: tuple[Row, ...]) -> bool:
        """Commit without waiting; return whether nobody else holds the lock."""
        try:
            self._here.commit(rows)
        except Exception as error:
            if isinstance(error, sqlite3.Error) and is_locked(error):
                return False
            raise explained(self._path, error) from error
        return True


@asynccontextmanager
async def open_sqlite_audit(path: Path) -> AsyncIterator[SqliteAudit]:
    """Open the log at `path`, made if need be; closing commits what is under way.

    Raises:
        AuditStoreError: when the log cannot be opened.
    """
    writer = SqliteWriter(path)
    try:
        await writer.start()
        # Closed before the writer: whoever is last carries over what is left.
        with closing(LogConnection.prompt(path)) as here:
            yield SqliteAudit(path, here, writer)
    finally:
        await writer.close()
