"""The gateway over stdin and stdout.

The SDK's transport would do, but for two things: it reads and writes in threads that nothing can
interrupt, so that a signal could not end the gateway; and it claims stdout only once it serves, so
that what prints while servers start would reach the client.
"""

import os
import select
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Final, cast

import anyio
from mcp.server.stdio import stdio_server

from seriatim.runtime.gateway import Gateway

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
READ_SIZE: Final = 64 * 1024
WRITE_SIZE: Final = select.PIPE_BUF
"""Bytes for which there is room wherever a write is possible at all."""


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

    async def flush(self) -> None:
        """Return at once: nothing is held back."""


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
    # The SDK iterates over its stdin, and writes and flushes its stdout, no more.
    stdin = cast("anyio.AsyncFile[str]", _lines(STDIN))
    stdout = cast("anyio.AsyncFile[str]", wire)
    try:
        async with stdio_server(stdin, stdout) as (incoming, outgoing):
            await gateway.run(incoming, outgoing, gateway.create_initialization_options())
    except* (BrokenPipeError, ConnectionResetError):
        pass  # the client has left without closing our stdin first


async def _lines(descriptor: int) -> AsyncIterator[str]:
    pending: list[bytes] = []
    while chunk := await _read(descriptor):
        first, *others = chunk.split(b"\n")
        pending.append(first)
        for other in others:
            yield b"".join(pending).decode(errors="replace")
            pending = [other]
    if any(pending):
        yield b"".join(pending).decode(errors="replace")


async def _read(descriptor: int) -> bytes:
    # A file is always readable, and cannot be waited for.
    with suppress(PermissionError):
        await anyio.wait_readable(descriptor)
    return os.read(descriptor, READ_SIZE)
