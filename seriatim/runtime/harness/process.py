"""The process of a harness that works on one task: its answer read, and its end made certain."""

import os
import signal
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Final, TypeVar, final

import anyio
from anyio.abc import AsyncResource, ByteReceiveStream, ByteSendStream, Process
from mcp.os.posix.utilities import terminate_posix_process_tree

from seriatim.runtime.harness.forms import Launch
from seriatim.runtime.servers.server_log import ServerLog

LARGEST_ANSWER: Final = 16 * 1024 * 1024
"""Bytes of stdout that are kept."""
GRACE: Final = 2.0
"""Seconds that a harness has to end once it is told to."""
WATCH: Final = 0.05
"""Seconds between two looks at whether a harness has ended."""
DRAIN: Final = 0.2
"""Seconds in which the last words of a harness that has ended are read."""

_Pipe = TypeVar("_Pipe", bound=AsyncResource)

_GONE: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


@final
@dataclass(frozen=True, slots=True)
class Finished:
    """What is left of a harness.

    Attributes:
        fate: how it ended, as a clause (`exited with code 3`); `""` when all was well.
        answer: what it wrote to stdout.
        last_words: the last line of its stderr, or `""`.
    """

    fate: str
    answer: str
    last_words: str


async def work_on(launch: Launch, task: str, log: ServerLog) -> Finished:
    """Start a harness, write the task to its stdin, and wait for its end.

    Whatever it started ends with it, and it ends when this is cancelled.

    Args:
        log: gets its stderr; closed on leaving.

    Raises:
        OSError: when it cannot be started.
    """
    with closing(log):
        # Shielded: a cancellation in between would lose sight of a running process.
        with anyio.CancelScope(shield=True):
            process = await anyio.open_process(
                launch.command, env={**os.environ, **launch.environment}, start_new_session=True
            )
        answer = bytearray()
        try:
            await _converse(process, task.encode(errors="replace"), answer, log)
        finally:
            with anyio.CancelScope(shield=True):
                await terminate_posix_process_tree(process, GRACE)
                for pipe in (process.stdin, process.stdout, process.stderr):
                    await _close(_present(pipe))
        fate = _fate(process.returncode)
        if len(answer) > LARGEST_ANSWER:
            fate = f"wrote more than {LARGEST_ANSWER} bytes"
        return Finished(fate, answer.decode(errors="replace").strip(), log.last_line)


async def _converse(process: Process, task: bytes, answer: bytearray, log: ServerLog) -> None:
    """Give a harness its task, and read what it writes until it has ended."""
    outcome = (anyio.Event(), anyio.Event())

    def keep(chunk: bytes) -> None:
        if len(answer) <= LARGEST_ANSWER:
            answer.extend(chunk)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_write, _present(process.stdin), task)
        tasks.start_soon(_read, _present(process.stdout), keep, outcome[0])
        tasks.start_soon(_read, _present(process.stderr), log.write, outcome[1])
        # Looks again and again: to wait for it would be to wait for its pipes too, which may live
        # on in what it started.
        while process.returncode is None:  # noqa: ASYNC110  no event tells it
            await anyio.sleep(WATCH)
        with anyio.move_on_after(DRAIN):
            for read in outcome:
                await read.wait()
        tasks.cancel_scope.cancel()


async def _write(pipe: ByteSendStream, data: bytes) -> None:
    # A harness that does not want to hear its task is free not to.
    with suppress(*_GONE):
        await pipe.send(data)
    await _close(pipe)


async def _read(pipe: ByteReceiveStream, keep: Callable[[bytes], None], ended: anyio.Event) -> None:
    with suppress(*_GONE, anyio.EndOfStream):
        while True:
            keep(await pipe.receive())
    ended.set()


def _fate(code: int | None) -> str:
    if code == 0:
        return ""
    if code is None:
        return "cannot be ended"
    if code > 0:
        return f"exited with code {code}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


def _present(pipe: _Pipe | None) -> _Pipe:
    if pipe is None:
        raise TypeError("a harness is started with three pipes")
    return pipe


async def _close(pipe: AsyncResource) -> None:
    with suppress(*_GONE):
        await pipe.aclose()
