"""The thread that commits rows, all that have gathered at a time."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Final

import anyio
import anyio.from_thread
import anyio.lowlevel

from seriatim.stores.errors import AuditStoreError, explained
from seriatim.stores.rows import Row
from seriatim.stores.sqlite_commit import LogConnection

LARGEST_BATCH: Final = 1000
"""Rows of one transaction; bounds how long other processes wait for the lock."""
CLOSING: Final = 5.0
"""Seconds that closing may take; rows that the disk has not taken by then are given up."""


@dataclass(slots=True, eq=False)
class _Job:
    """Rows to commit, or none to ask whether a row could be; `errors` holds what went wrong."""

    rows: tuple[Row, ...]
    done: anyio.Event = field(default_factory=anyio.Event)
    errors: tuple[AuditStoreError, ...] = ()

    async def wait(self) -> None:
        await self.done.wait()
        for error in self.errors:
            raise error


class SqliteWriter:
    """Owns the connection to one log, in a thread of its own.

    The event loop never waits for the disk: callers wait for an event, so they can be cancelled at
    any moment; what they handed over is committed all the same. While one transaction runs, the
    rows of other callers gather, and make up the next.
    """

    def __init__(self, path: Path) -> None:
        self._path: Final = path
        self._loop: Final = anyio.lowlevel.current_token()
        self._queue: Final[SimpleQueue[_Job | None]] = SimpleQueue()
        self._opening: Final = _Job(())
        self._ended: Final = anyio.Event()
        self._closed = False
        self._unanswered = 1
        # A daemon: a disk that never answers must not keep the process from ending.
        self._thread: Final = threading.Thread(
            target=self._work, name="seriatim audit writer", daemon=True
        )

    async def start(self) -> None:
        """Return when the log is open.

        Raises:
            AuditStoreError: when it cannot be opened.
        """
        self._thread.start()
        await self._opening.wait()

    async def commit(self, *rows: Row) -> None:
        """Return when `rows` are committed; without any, when a row could be.

        Raises:
            AuditStoreError: when they are not.
        """
        if self._closed:
            raise AuditStoreError(f"the audit log `{self._path}` is closed")
        job = _Job(rows)
        self._unanswered += 1
        self._queue.put(job)
        await job.wait()

    @property
    def idle(self) -> bool:
        """Whether it is open, and has answered all its callers."""
        return not (self._closed or self._unanswered)

    def waiting(self) -> int:
        """Return how many callers the thread has not got to."""
        return self._queue.qsize()

    async def close(self) -> None:
        """Commit what was handed over, and end the thread; shielded from cancellation."""
        self._closed = True
        self._queue.put(None)
        with anyio.move_on_after(CLOSING, shield=True):
            await self._ended.wait()

    def _work(self) -> None:
        try:
            with closing(LogConnection.patient(self._path)) as log:
                self._answer([self._opening])
                for jobs in self._batches():
                    self._answer(jobs, *_commit(log, jobs))
        except Exception as error:  # noqa: BLE001  a thread that just died would leave callers waiting
            self._answer([self._opening], error)
        self._tell(self._ended)

    def _batches(self) -> Iterator[list[_Job]]:
        """Yield what has gathered, whenever something has, until the writer is closed."""
        open_ = True
        while open_:
            taken = [self._queue.get()]
            while not self._queue.empty() and len(taken) < LARGEST_BATCH:
                taken.append(self._queue.get())
            jobs = [job for job in taken if job is not None]
            open_ = len(jobs) == len(taken)
            if jobs:
                yield jobs

    def _answer(self, jobs: Sequence[_Job], *errors: Exception) -> None:
        for job in jobs:
            job.errors = tuple(explained(self._path, error) for error in errors)
        self._tell(*(job.done for job in jobs))

    def _tell(self, *events: anyio.Event) -> None:
        # The loop may be gone already, and with it everybody who waited.
        with suppress(RuntimeError):
            anyio.from_thread.run_sync(self._set, events, token=self._loop)

    def _set(self, events: Sequence[anyio.Event]) -> None:
        self._unanswered -= len(events)
        for event in events:
            event.set()


def _commit(log: LogConnection, jobs: Sequence[_Job]) -> tuple[Exception, ...]:
    try:
        log.commit([row for job in jobs for row in job.rows])
    except Exception as error:  # noqa: BLE001  every caller gets an answer, whatever went wrong
        return (error,)
    return ()
