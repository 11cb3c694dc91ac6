"""A server that runs as a process: MCP over its stdin and stdout.

The SDK's own stdio transport tells neither the exit code nor the last words of a server, gives it
variables of our environment that nobody named, leaves running what a server started that ends by
itself, and logs a traceback for each line that is no message.
"""

import json
import math
import re
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from subprocess import PIPE
from typing import Any, Final

import anyio
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import DEFAULT_INHERITED_ENV_VARS
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from seriatim.runtime.servers.link import NotStartedError, TransportStreams
from seriatim.runtime.servers.pipe import InputPipe
from seriatim.runtime.servers.server_log import ServerLog
from seriatim.topology.models import StdioTransport

INHERITED: Final = (*DEFAULT_INHERITED_ENV_VARS, "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ")
"""Variables that every server gets; all others have to stand in its definition."""
LONGEST_LINE: Final = 256 * 1024 * 1024
"""Bytes on stdout without a newline beyond which a server is taken to speak no MCP."""
GRACE: Final = 1.0
"""Seconds that a process has to end by itself, and again after it was asked to."""
REAPING: Final = 2.0
"""Seconds in which the death of a killed process is seen; only an unkillable one uses them up."""
POLL: Final = 0.01
"""Seconds between two looks at a process that is about to end."""
WATCH: Final = 0.05
"""Seconds between two looks at a process that should go on."""
DRAIN: Final = 0.2
"""Seconds in which the last words of a process that has ended are read."""
BACKLOG: Final = 1000
"""Messages that may wait for a process that reads none; more than any client has calls at once."""
STUCK: Final = 5.0
"""Seconds without reading after which a process with a full backlog is given up."""

END_OF_LINE: Final = 200
"""Bytes at both ends of a line in which the id of its message is looked for."""

_ID: Final = re.compile(rb'"id"\s*:\s*([0-9]{1,15})\s*[,}]')

GONE: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)
"""What a pipe raises whose other end, or whose own end, is closed."""


class ServerProcess:
    """Starts a server's process, and stops it for certain, with all that it started.

    Args:
        transport: what to start, without variables.
        written: the same as the definition has it; it is shown where the process cannot be started.
        environ: where the few inherited variables come from.
        directory: what a relative working directory is relative to.
        log: gets the server's stderr; closed when the process has ended.
    """

    def __init__(
        self,
        transport: StdioTransport,
        written: StdioTransport,
        environ: Mapping[str, str],
        directory: Path,
        log: ServerLog,
    ) -> None:
        self._command: Final = transport.command
        self._written: Final = written
        self._environment: Final = {
            **{name: environ[name] for name in INHERITED if name in environ},
            **transport.env,
        }
        self._cwd: Final = str(directory / transport.cwd)
        self._log: Final = log
        self._stdin: Final = InputPipe()
        self._logged: Final = anyio.Event()
        self._ended: Final = anyio.Event()
        self._reading: Final = anyio.CancelScope()
        self._leaving = False
        self._buried = False
        self._sent = 0
        self._noise = b""
        self._fate = ""

    @property
    def fate(self) -> str:
        return self._fate

    @property
    def evidence(self) -> str:
        return self._log.last_line or self._noise.strip().decode(errors="replace")

    @property
    def heard(self) -> bool:
        return self._stdin.was_read()

    async def ended(self) -> None:
        await self._ended.wait()

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[TransportStreams]:
        with closing(self._log), closing(self._stdin):
            # Shielded, and nothing is awaited before the `try`: a cancellation in between would
            # lose sight of a running process.
            with anyio.CancelScope(shield=True):
                process = await self._start()
            received, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
            # Without a bound, so that nobody who gives up a call waits for a process that does not
            # read; `_watch` sees to it that it does not grow for ever.
            outgoing, to_send = anyio.create_memory_object_stream[SessionMessage](math.inf)
            async with anyio.create_task_group() as tasks:
                try:
                    tasks.start_soon(self._read, process, received)
                    tasks.start_soon(self._write, process, to_send)
                    tasks.start_soon(self._keep_log, process)
                    tasks.start_soon(self._watch, process, to_send)
                    yield incoming, outgoing
                finally:
                    self._leaving = True
                    with anyio.CancelScope(shield=True):
                        # Once it has ended, its process group's number may be somebody else's.
                        if not self._ended.is_set():
                            await self._end(process)
                        for stream in (incoming, outgoing, received, to_send):
                            stream.close()
                    tasks.cancel_scope.cancel()

    async def _start(self) -> Process:
        try:
            return await anyio.open_process(
                self._command,
                stdin=self._stdin.reading_end,
                stdout=PIPE,
                stderr=PIPE,
                env=self._environment,
                cwd=self._cwd,
                start_new_session=True,
            )
        except OSError as error:
            missing = self._written.cwd if error.filename == self._cwd else self._written.command[0]
            raise NotStartedError(error.strerror or type(error).__name__, missing) from error
        finally:
            self._stdin.started()

    async def _read(
        self,
        process: Process,
        received: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        # The fate is known before the stream closes, so that whoever waits for an answer can say
        # why there will be none.
        async with received:
            try:
                with self._reading:
                    stdout = BufferedByteReceiveStream(_present(process.stdout))
                    while True:
                        line = await stdout.receive_until(b"\n", LONGEST_LINE)
                        for message in self._parsed(line):
                            await received.send(message)
            except anyio.DelimiterNotFound:
                await self._bury(process, f"sent a line of more than {LONGEST_LINE} bytes")
            except (*GONE, anyio.EndOfStream, anyio.IncompleteRead):
                await self._bury(process)
            else:
                await self._bury(process)

    def _parsed(self, line: bytes) -> tuple[SessionMessage, ...]:
        """Return the message in a line; none for a line that is rubbish."""
        try:
            return (SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False)),)
        except ValueError:
            self._noise = line if line.strip() else self._noise
        return _repaired(line)

    async def _write(
        self, process: Process, to_send: MemoryObjectReceiveStream[SessionMessage]
    ) -> None:
        async with to_send:
            try:
                async for message in to_send:
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await self._stdin.send(text.encode() + b"\n")
                    self._sent += 1
            except GONE:
                # A server that hears nothing any more answers nothing any more.
                await self._bury(process)

    async def _keep_log(self, process: Process) -> None:
        try:
            with suppress(*GONE, anyio.EndOfStream):
                while True:
                    self._log.write(await _present(process.stderr).receive())
        finally:
            self._logged.set()

    async def _watch(
        self, process: Process, to_send: MemoryObjectReceiveStream[SessionMessage]
    ) -> None:
        """Stop reading when the process is gone, though what it started may hold its pipes open.

        Give up a process that reads nothing while ever more is to be said to it.
        """
        sent, since = self._sent, anyio.current_time()
        while process.returncode is None:
            await anyio.sleep(WATCH)
            if self._sent != sent or to_send.statistics().current_buffer_used < BACKLOG:
                sent, since = self._sent, anyio.current_time()
            elif anyio.current_time() - since > STUCK:
                await self._bury(process, "stopped reading its stdin")
        await anyio.sleep(DRAIN)
        self._reading.cancel()

    async def _bury(self, process: Process, deed: str = "") -> None:
        """End what is left of a server that has fallen silent, and say what became of it.

        Args:
            deed: what it did to be ended; nothing where its end, or its silence, is all we know.
        """
        if self._leaving:
            return
        if self._buried:
            await self._ended.wait()
            return
        self._buried = True
        with anyio.CancelScope(shield=True):
            by_itself = await self._end(process)
            silent = _fate(process.returncode) if by_itself else "closed its pipes"
            self._fate = deed or silent
            self._ended.set()

    async def _end(self, process: Process) -> bool:
        """End the process and all that it started; return whether it ended by itself."""
        self._stdin.close()
        by_itself = await _exited(process, GRACE)
        await terminate_posix_process_tree(process, GRACE)
        if await _exited(process, REAPING):
            # What a server started and let go may hold its stderr open for ever.
            with anyio.move_on_after(GRACE):
                await self._logged.wait()
            # Whatever it has left unread in its pipes: a pipe that is not closed outlives the loop.
            await process.aclose()
        return by_itself


def _repaired(line: bytes) -> tuple[SessionMessage, ...]:
    """Make the best of a line that is no valid message, so that no request waits for its answer."""
    try:
        message: Any = json.loads(line.decode(errors="replace"), parse_int=_any_size)
    except ValueError:
        return ()
    except RecursionError:
        # Too deep to be read, but its id stands at one of its ends.
        found = _ID.search(line[:END_OF_LINE]) or _ID.search(line[-END_OF_LINE:])
        message = {"id": int(found[1])} if found else None
    # Half a character, which JSON can write and no text can hold, becomes a question mark.
    text = json.dumps(message, ensure_ascii=False).encode(errors="replace")
    with suppress(ValueError):
        return (SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False)),)
    match message:
        case {"method": _}:
            return ()
        case {"id": int() | str() as id_}:
            error = ErrorData(
                code=INTERNAL_ERROR, message="the answer is no valid JSON-RPC message"
            )
            return (SessionMessage(JSONRPCError(jsonrpc="2.0", id=id_, error=error)),)
        case _:
            return ()


def _any_size(digits: str) -> int:
    """Return an integer; 0 for one of more digits than Python converts, which is no id of ours."""
    try:
        return int(digits)
    except ValueError:
        return 0


def _fate(code: int | None) -> str:
    if code is None:
        return "cannot be ended"
    if code >= 0:
        return f"exited with code {code}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


async def _exited(process: Process, limit: float) -> bool:
    """Return whether the process has ended within `limit` seconds.

    Looks again and again, because waiting for it means, on asyncio, to wait for its pipes too, and
    these may live on in what it started.
    """
    with anyio.move_on_after(limit):
        while process.returncode is None:  # noqa: ASYNC110  no event tells it, see above
            await anyio.sleep(POLL)
    return process.returncode is not None


def _present(pipe: ByteReceiveStream | None) -> ByteReceiveStream:
    if pipe is None:
        raise TypeError("a server's process is started with pipes")
    return pipe
