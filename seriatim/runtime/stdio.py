"""The gateway over stdin and stdout.

The SDK's transport would do, but for two things: it reads stdin in a thread that nothing can
interrupt, so that a signal could not end the gateway; and it claims stdout only once it serves, so
that what prints while servers start would reach the client.
"""

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Final, TextIO, cast

import anyio
from mcp.server.stdio import stdio_server

from seriatim.runtime.gateway import Gateway

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
CHUNK: Final = 64 * 1024


@contextmanager
def claimed_stdout() -> Iterator[TextIO]:
    """Give the process's stdout to the caller alone; what others print goes to stderr meanwhile."""
    sys.stdout.flush()
    wire = os.fdopen(os.dup(STDOUT), "w", encoding="utf-8", newline="\n")
    os.dup2(STDERR, STDOUT)
    try:
        with redirect_stdout(sys.stderr):
            yield wire
    finally:
        # What is still buffered was printed by others: out with it while stdout leads to stderr.
        sys.stdout.flush()
        os.dup2(wire.fileno(), STDOUT)
        # The client may have left with something half sent.
        with suppress(OSError):
            wire.close()


async def serve_stdio(gateway: Gateway, wire: TextIO, *, stop: anyio.Event) -> None:
    """Serve the client at stdin until it closes it or leaves, or until `stop` is set.

    Calls in flight are cancelled then.

    Args:
        wire: where answers go; from `claimed_stdout`.

    """
    async with anyio.create_task_group() as tasks:

        async def stop_serving() -> None:
            await stop.wait()
            tasks.cancel_scope.cancel()

        tasks.start_soon(stop_serving)
        try:
            await _serve(gateway, wire)
        except* (BrokenPipeError, ConnectionResetError):
            pass  # the client has left without closing our stdin first
        tasks.cancel_scope.cancel()


async def _serve(gateway: Gateway, wire: TextIO) -> None:
    # The SDK only ever iterates over its stdin.
    lines = cast("anyio.AsyncFile[str]", _lines(STDIN))
    async with stdio_server(lines, anyio.wrap_file(wire)) as (incoming, outgoing):
        await gateway.run(incoming, outgoing, gateway.create_initialization_options())


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
    return os.read(descriptor, CHUNK)
