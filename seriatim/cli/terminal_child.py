"""A command that has our terminal, our stdin and our stdout for as long as it runs."""

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import anyio
from anyio.abc import Process

TOLD: Final = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)
"""Signals that the command gets when we do; of the window's size its terminal tells it itself."""
_TYPED: Final = (signal.SIGINT, signal.SIGQUIT)


class TerminalChild:
    """Starts one command, and hands on to it the signals that reach us."""

    def __init__(self) -> None:
        self._started: Final[list[Process]] = []

    def tell(self, number: signal.Signals) -> bool:
        """Hand a signal on; return whether there is, or was, a command that it is meant for."""
        for process in self._started:
            if process.returncode is None and not _was_typed(number):
                with suppress(ProcessLookupError):
                    process.send_signal(number)
        return bool(self._started)

    async def run(
        self, command: tuple[str, ...], environment: Mapping[str, str], stdout: int
    ) -> int:
        """Run the command to its end, and return its exit code: 128 and the number for a signal.

        Raises:
            OSError: when it cannot be started.
        """
        # Shielded: a cancellation in between would lose sight of a running process.
        with anyio.CancelScope(shield=True):
            process = await anyio.open_process(
                command, stdin=None, stdout=stdout, stderr=None, env=environment
            )
            self._started.append(process)
        try:
            code = await process.wait()
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
        return code if code >= 0 else 128 - code


def _was_typed(number: signal.Signals) -> bool:
    """Whether a signal comes from the keyboard of our terminal: the command has it already then.

    The terminal sends it to every process of the job in the foreground, which we both belong to.
    """
    if number not in _TYPED:
        return False
    try:
        terminal = os.open(os.ctermid(), os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
