"""Seriatim's own commands, run as a user runs them."""

import os
import shlex
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import anyio

SECONDS: Final = 60.0
"""How long one command may take; each takes a second or two."""


class DemoError(Exception):
    """The demo could not show what it claims; the message says why, as a clause."""


@final
@dataclass(frozen=True, slots=True)
class Command:
    """A command line.

    Attributes:
        words: what is run.
        shown: the same, as a user may paste it in the current directory.
    """

    words: tuple[str, ...]
    shown: str


@final
@dataclass(frozen=True, slots=True)
class Printed:
    """What a command printed."""

    stdout: str
    stderr: str


def seriatim(*words: str) -> Command:
    """Return a command of this very installation."""
    shown = f"{_own_name()} {shlex.join(words)}"
    return Command((sys.executable, "-m", "seriatim", *words), shown)


def python(script: Path, command: Command) -> Command:
    """Return the command that runs a Python script on another command."""
    shown = f"{shlex.join([_near(sys.executable), str(script)])} {command.shown}"
    return Command((sys.executable, str(script), *command.words), shown)


async def perform(commands: Iterable[Command]) -> dict[Command, Printed]:
    """Run commands to their end, side by side.

    Raises:
        DemoError: when one fails, or takes too long.
    """
    printed: dict[Command, Printed] = {}
    problems: list[str] = []

    async def run(command: Command) -> None:
        with anyio.move_on_after(SECONDS):
            ended = await anyio.run_process(command.words, check=False, env=_environment())
            output = Printed(ended.stdout.decode(), ended.stderr.decode())
            if ended.returncode == 0:
                printed[command] = output
            else:
                said = (output.stderr + output.stdout).strip() or "nothing"
                left = f"left with exit code {ended.returncode}, saying\n{said}"
                problems.append(f"`{command.shown}` {left}")
            return
        problems.append(f"`{command.shown}` had not ended after {SECONDS:g} seconds")

    async with anyio.create_task_group() as tasks:
        for command in commands:
            tasks.start_soon(run, command)
    if problems:
        raise DemoError("\n\n".join(problems))
    return printed


def _environment() -> dict[str, str]:
    """Return an environment in which the settings of the demo's workspace are the only ones."""
    return {name: value for name, value in os.environ.items() if not name.startswith("SERIATIM_")}


def _own_name() -> str:
    """Return how `seriatim` is called from here: by its name where PATH leads to this one."""
    own = Path(sys.executable).with_name("seriatim")
    if not own.exists():
        return shlex.join([_near(sys.executable), "-m", "seriatim"])
    found = shutil.which("seriatim")
    if found and Path(found).resolve() == own.resolve():
        return "seriatim"
    return shlex.quote(_near(str(own)))


def _near(path: str) -> str:
    """Return a path as seen from the current directory where it lies within, else as it is."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path
