"""Where an audit log is, as users name it, and the one way to open what lies there."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from interceptors import AuditSink
from seriatim.stores.audit_log import open_audit_log
from seriatim.stores.errors import NoAuditLogError, UnknownPlaceError
from seriatim.stores.sqlite import open_sqlite_audit

DEFAULT: Final = ".seriatim/audit.sqlite3"
"""The log of a workspace, seen from its directory."""
_SQLITE: Final = "sqlite:///"
_SUPPORTED: Final = f"give the path of a file, or `{_SQLITE}PATH`"


@final
@dataclass(frozen=True, slots=True)
class SqlitePlace:
    """A log in an SQLite file."""

    path: Path


def audit_place(url: str, directory: Path) -> SqlitePlace:
    """Return the place that `url` names: a path, `sqlite:///PATH`, or `""` for the default.

    A relative path lies in `directory`; `sqlite:////srv/log` is absolute, as elsewhere in Python.

    Raises:
        UnknownPlaceError: when it names something else.
    """
    scheme, separator, _ = url.partition("://")
    if separator and not url.startswith(_SQLITE):
        # The rest is not repeated: it may hold a password.
        raise UnknownPlaceError(f"`{scheme}://` is no audit store of this build", _SUPPORTED)
    path = url.removeprefix(_SQLITE)
    if path == ":memory:" or (separator and not path):
        raise UnknownPlaceError(f"`{url}` names no file for the audit log", _SUPPORTED)
    return SqlitePlace(directory / (path or DEFAULT))


def chosen_place(url: str, setting: str, workspace_directory: Path) -> SqlitePlace:
    """Return where the log of a workspace is.

    Args:
        url: what the command line says, seen from the current directory, or `""`; it wins.
        setting: what the workspace's settings or `SERIATIM_AUDIT` say, or `""`; seen from the
            workspace's directory, so that processes with other current directories agree.

    Raises:
        UnknownPlaceError: when the one that counts is no place for a log.
    """
    if url:
        return audit_place(url, Path.cwd())
    return audit_place(setting, workspace_directory)


def open_audit(place: SqlitePlace) -> AbstractAsyncContextManager[AuditSink]:
    """Return what opens the log at `place` for writing; entering raises `AuditStoreError`."""
    return open_sqlite_audit(place.path)


def has_run(place: SqlitePlace, run: str) -> bool:
    """Return whether the log at `place` has any row of `run`.

    Raises:
        AuditStoreError: when there is a log that cannot be read.
    """
    try:
        with open_audit_log(place.path) as log:
            return log.has_run(run)
    except NoAuditLogError:
        return False
