"""The stdin of a server's process, on a pipe of our own.

The event loop's own pipe does not tell whether the process has read what was written, and asyncio's
is a socket, which loses what was not read when the process ends.
"""

import fcntl
import os
import sys
import termios
from contextlib import suppress

import anyio


class InputPipe:
    """A pipe into a process that is about to be started; one task at a time writes to it.

    Attributes:
        reading_end: what the process gets; `started` closes our copy.
    """

    def __init__(self) -> None:
        self.reading_end, self._writing_end = os.pipe()
        os.set_blocking(self._writing_end, False)
        self._reading_end_is_ours = True
        self._is_open = True
        self._written = 0
        self._was_read = False

    def started(self) -> None:
        """Leave the reading end to the process, or to nobody when there is none."""
        if self._reading_end_is_ours:
            self._reading_end_is_ours = False
            os.close(self.reading_end)

    async def send(self, data: bytes) -> None:
        """Write all of `data`.

        Raises:
            OSError: when the other end is closed.
            anyio.ClosedResourceError: when this end is closed.
        """
        rest = memoryview(data)
        while rest:
            if not self._is_open:
                raise anyio.ClosedResourceError
            try:
                written = os.write(self._writing_end, rest)
            except BlockingIOError:
                await anyio.wait_writable(self._writing_end)
            else:
                self._written += written
                rest = rest[written:]

    def was_read(self) -> bool:
        """Return whether any of what was written was read, as far as the system can tell."""
        if self._is_open:
            self._was_read = self._written > _unread(self._writing_end)
        return self._was_read

    def close(self) -> None:
        """Close our ends; the process reads what was written, and then the end."""
        self.started()
        if self._is_open:
            self.was_read()
            self._is_open = False
            anyio.notify_closing(self._writing_end)
            os.close(self._writing_end)


def _unread(descriptor: int) -> int:
    """Return the bytes in a pipe; 0 where only its reading end knows."""
    with suppress(OSError):
        answer = fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4))
        return int.from_bytes(answer, sys.byteorder)
    return 0
