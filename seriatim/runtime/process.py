"""A server that runs as a process: MCP over its stdin and stdout.

The SDK's own stdio transport tells neither the exit code nor the last words of a server, gives it
variables of our environment that nobody named, leaves what it started running when it ends by
itself, and prints a traceback for each line that is no message.
"""

import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, ObjectReceiveStream, ObjectSendStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp.client.stdio import DEFAULT_INHERITED_ENV_VARS
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from seriatim.runtime.server_log import ServerLog
from seriatim.topology.models import StdioTransport

INHERITED: Final = (*DEFAULT_INHERITED_ENV_VARS, "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ")
"""Variables that every server gets; all others have to stand in its definition."""
LONGEST_MESSAGE: Final = 256 * 1024 * 1024
"""Bytes of one line on stdout beyond which a server is taken to speak no MCP."""
GRACE: Final = 1.0
"""Seconds that a process has to end by itself, and again after a polite signal."""
REAPING: Final = 2.0
"""Seconds in which the death of a killed process is seen; only one that cannot be killed uses it up."""
POLL: Final = 0.01
"""Seconds between two looks at a process that is about to end."""

Incoming = ObjectReceiveStream[SessionMessage | Exception]
Outgoing = ObjectSendStream[SessionMessage]


class ServerProcess:
    """Starts a server's process, and stops it for certain, with all that it started.

    Args:
        transport: what to start, without variables.
        environ: the environment from which the few inherited variables come.
        directory: what a relative working directory is relative to.
        log: gets the server's stderr; closed when the process has been stopped.

    """

    def __init__(
        self,
        transport: StdioTransport,
        environ: Mapping[str, str],
        directory: Path,
        log: ServerLog,
    ) -> None:
        self._transport: Final = transport
        self._environment: Final = {
            name: environ[name] for name in INHERITED if name in environ
        } | dict(transport.env)
        self._directory: Final = directory
        self._log: Final = log
        self._ended: Final = anyio.Event()
        self._logged: Final = anyio.Event()
        self._fate = ""
        self._noise = b""

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Incoming, Outgoing]]:
        """Run the process and give the streams of its messages.

        Raises:
            OSError: when the process cannot be started.

        """
        try:
            # Shielded: a cancellation between the start and the `try` below would lose the process.
            with anyio.CancelScope(shield=True):
                process = await anyio.open_process(
                    self._transport.command,
                    env=self._environment,
                    cwd=self._directory / self._transport.cwd,
                    start_new_session=True,
                )
            async with anyio.create_task_group() as tasks:
                try:
                    incoming, messages = _channel()
                finally:
                    pass
                yield incoming, messages
        finally:
            self._log.close()
