"""What goes wrong with an audit store, in words that a user can act on."""

import sqlite3
from pathlib import Path
from typing import Final

ELSEWHERE: Final = "place the log elsewhere with `--audit` or `SERIATIM_AUDIT`"


class AuditStoreError(Exception):
    """The audit log cannot be used.

    Attributes:
        message: what is the matter, as one sentence without a full stop.
        hint: the way out.
    """

    def __init__(self, message: str, hint: str = ELSEWHERE) -> None:
        super().__init__(message)
        self.message: Final = message
        self.hint: Final = hint


class UnknownPlaceError(AuditStoreError):
    """What the user named is no place for an audit log: wrong usage, not a fault of a store."""


class NoAuditLogError(AuditStoreError):
    """Nothing has been recorded yet."""


def explained(path: Path, error: Exception) -> AuditStoreError:
    """Return `error`, raised while the log at `path` was in use, as one of ours."""
    match error:
        case AuditStoreError(message=message, hint=hint):
            # A fresh one: each of the callers of a batch raises its own.
            return AuditStoreError(message, hint)
        case sqlite3.Error() if path.is_dir():
            return AuditStoreError(f"`{path}` is a directory, and an audit log is a file")
        case sqlite3.Error():
            return _of_sqlite(path, error)
        case OSError():
            reason = (error.strerror or type(error).__name__).lower()
            return AuditStoreError(f"cannot use the audit log `{path}`: {reason}", ELSEWHERE)
        case _:
            return AuditStoreError(f"cannot use the audit log `{path}`: {type(error).__name__}")


def is_locked(error: sqlite3.Error) -> bool:
    """Return whether somebody else holds a lock, for the moment perhaps."""
    return _kind(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _kind(error: sqlite3.Error) -> int:
    # Errors that Python's module raises by itself carry no code of SQLite. The low byte is the
    # kind, the others refine it.
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF


def _of_sqlite(path: Path, error: sqlite3.Error) -> AuditStoreError:
    match _kind(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return AuditStoreError(
                f"the audit log `{path}` is locked by another process",
                f"end the process that holds it, or {ELSEWHERE}",
            )
        case sqlite3.SQLITE_NOTADB:
            return AuditStoreError(f"`{path}` is no SQLite database", ELSEWHERE)
        case sqlite3.SQLITE_CORRUPT:
            return AuditStoreError(
                f"the audit log `{path}` is damaged", f"move the file away, or {ELSEWHERE}"
            )
        case sqlite3.SQLITE_READONLY:
            return AuditStoreError(f"the audit log `{path}` is read-only", ELSEWHERE)
        case sqlite3.SQLITE_FULL:
            return AuditStoreError(
                f"the audit log `{path}` cannot grow: the disk is full",
                f"free some space, or {ELSEWHERE}",
            )
        case sqlite3.SQLITE_CANTOPEN:
            return AuditStoreError(f"the audit log `{path}` cannot be opened", ELSEWHERE)
        case _:
            return AuditStoreError(f"cannot use the audit log `{path}`: {error}", ELSEWHERE)
