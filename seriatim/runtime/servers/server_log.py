"""What a server writes to its stderr: kept in a file, and its last line remembered."""

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import quote

from interceptors.redaction import REDACTED, SHORTEST_SECRET

LARGEST: Final = 16 * 1024 * 1024
"""Bytes that one start of a server adds to its file at most; a flood does not fill the disk."""
LONGEST_LINE: Final = 64 * 1024
"""Bytes after which a line is written although it has not ended."""


def log_path(directory: Path, server: str) -> Path:
    """Return where a server's stderr goes, in the workspace's directory (DESIGN.md, section 7)."""
    return directory / ".seriatim" / "servers" / f"{quote(server, safe='')}.log"


class ServerLog:
    """Appends a server's stderr to a file, without the secrets that it was given.

    A file that cannot be written is no reason to stop a server: what cannot be kept is dropped.

    Args:
        secrets: values that are blotted out; those under 8 characters are left alone.
    """

    def __init__(self, path: Path, secrets: Iterable[str]) -> None:
        self._secrets: Final = sorted(
            (secret.encode() for secret in secrets if len(secret) >= SHORTEST_SECRET),
            key=len,
            reverse=True,
        )
        self._file: Final = _open(path)
        self._room = LARGEST
        self._unfinished = b""
        self._last = b""

    def write(self, chunk: bytes) -> None:
        """Add what the server wrote; whole lines go to the file at once."""
        lines, newline, rest = (self._unfinished + chunk).rpartition(b"\n")
        if len(rest) > LONGEST_LINE:
            lines, newline, rest = lines + newline + rest, b"", b""
        self._unfinished = rest
        self._keep(lines + newline)

    def close(self) -> None:
        """Write what has not ended in a newline, and close the file."""
        self._keep(self._unfinished)
        self._unfinished = b""
        for file in self._file:
            file.close()

    @property
    def last_line(self) -> str:
        """The last line that is not blank, or `""`."""
        last = self._clean(self._unfinished) if self._unfinished.strip() else self._last
        return last.strip().decode(errors="replace")

    def _clean(self, data: bytes) -> bytes:
        for secret in self._secrets:
            data = data.replace(secret, REDACTED.encode())
        return data

    def _keep(self, data: bytes) -> None:
        if not data:
            return
        data = self._clean(data)
        self._last = next(
            (line for line in reversed(data.splitlines()) if line.strip()), self._last
        )
        kept, self._room = data[: self._room], max(0, self._room - len(data))
        try:
            for file in self._file:
                file.write(kept)
        except OSError:
            self._room = 0


def _open(path: Path) -> tuple[BinaryIO, ...]:
    """Open for appending, unbuffered and for the owner only; nothing where that cannot be done."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        return (path.open("ab", buffering=0),)
    except OSError:
        return ()
