"""The gateway over stdin and stdout.

The SDK's transport would do, but for three things: it reads and writes in threads that nothing can
interrupt, so that a signal could not end the gateway; it claims stdout only once it serves, so that
what prints while servers start would reach the client; and it answers nothing to a line that is no
message.
"""

import os
import select
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Final, assert_never

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from seriatim.runtime.gateway.incoming import BrokenAnswer, Message, Nothing, Reply, meaning_of
from seriatim.runtime.gateway.server import Gateway

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
READ_SIZE: Final = 64 * 1024
WRITE_SIZE: Final = select.PIPE_BUF
"""Bytes for which there is room wherever a write is possible at all."""
LAST_WORDS: Final = 1.0
"""Seconds in which what is answered already goes out when the client has closed our stdin."""


class Wire:
    """The process's stdout, for one writer.

    Attributes:
        descriptor: for a process that is to write there instead.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor: Final = descriptor

    async def write(self, text: str) -> None:
        """Write all of `text`; a cancellation leaves it unfinished."""
        rest = memoryview(text.encode(errors="backslashreplace"))
        while rest:
            # A file is always writable, and cannot be waited for.
            with suppress(PermissionError):
                await anyio.wait_writable(self.descriptor)
            rest = rest[os.write(self.descriptor, rest[:WRITE_SIZE]) :]


@contextmanager
def claimed_stdout() -> Iterator[Wire]:
    """Give the process's stdout to the caller alone; what others print goes to stderr meanwhile."""
    sys.stdout.flush()
    private = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)
    try:
        with redirect_stdout(sys.stderr):
            yield Wire(private)
    finally:
        # What others have left in the buffer goes out while stdout still leads to stderr.
        sys.stdout.flush()
        os.dup2(private, STDOUT)
        os.close(private)


async def serve_stdio(gateway: Gateway, wire: Wire) -> None:
    """Serve the client at stdin until it leaves; calls in flight are cancelled then."""
    to_gateway, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
    outgoing, to_client = anyio.create_memory_object_stream[SessionMessage]()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read_messages, to_gateway, outgoing.clone())
            tasks.start_soon(_write_messages, to_client, wire)
            await gateway.run(incoming, outgoing, gateway.create_initialization_options())
            await outgoing.aclose()
            tasks.cancel_scope.deadline = anyio.current_time() + LAST_WORDS
    except* (BrokenPipeError, ConnectionResetError):
        pass  # the client has left without closing our stdin first


async def _read_messages(
    to_gateway: MemoryObjectSendStream[SessionMessage | Exception],
    to_client: MemoryObjectSendStream[SessionMessage],
) -> None:
    # It may stop listening, when it ends, before it is through with us.
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with to_gateway, to_client:
            async for line in _lines(STDIN):
                match meaning_of(line):
                    case Message(message) | BrokenAnswer(message):
                        await to_gateway.send(SessionMessage(message))
                    case Reply(error):
                        await to_client.send(SessionMessage(error))
                    case Nothing():
                        pass
                    case meaning:
                        assert_never(meaning)


async def _write_messages(to_client: MemoryObjectReceiveStream[SessionMessage], wire: Wire) -> None:
    async with to_client:
        async for message in to_client:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            await wire.write(f"{text}\n")


async def _lines(descriptor: int) -> AsyncIterator[bytes]:
    """Yield the lines that are read, without their ends; empty ones are left out."""
    pending: list[bytes] = []
    while chunk := await _read(descriptor):
        first, *others = chunk.split(b"\n")
        pending.append(first)
        for other in others:
            if line := _text(pending):
                yield line
            pending = [other]
    if line := _text(pending):
        yield line


def _text(parts: Sequence[bytes]) -> bytes:
    """Return a line as UTF-8, with a mark for what was none."""
    return b"".join(parts).strip().decode(errors="replace").encode()


async def _read(descriptor: int) -> bytes:
    # A file is always readable, and cannot be waited for.
    with suppress(PermissionError):
        await anyio.wait_readable(descriptor)
    return os.read(descriptor, READ_SIZE)
