"""The audit log in an SQLite file: the default store."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from interceptors import AuditRecord
from seriatim.stores.rows import to_row
from seriatim.stores.sqlite_writer import SqliteWriter


class SqliteAudit:
    """An `AuditSink`; made by `open_sqlite_audit`. Several processes may write to one file."""

    def __init__(self, writer: SqliteWriter) -> None:
        self._writer: Final = writer

    async def ready(self) -> None:
        """Return when a row could be committed now.

        Raises:
            AuditStoreError: when the log is locked, read-only, deleted or closed, or the disk full.
        """
        await self._writer.commit()

    async def write(self, record: AuditRecord) -> None:
        """Return when the row is committed; the row of a cancelled caller is committed too.

        Raises:
            AuditStoreError: when it is not.
        """
        await self._writer.commit(to_row(record))

    def waiting(self) -> int:
        return self._writer.waiting()


@asynccontextmanager
async def open_sqlite_audit(path: Path) -> AsyncIterator[SqliteAudit]:
    """Open the log at `path`, made if need be; closing commits what is under way.

    Raises:
        AuditStoreError: when the log cannot be opened.
    """
    writer = SqliteWriter(path)
    try:
        await writer.start()
        yield SqliteAudit(writer)
    finally:
        await writer.close()
