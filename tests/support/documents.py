"""Documents whose console blocks are run: what a block shows, and whether it is what is printed."""

import doctest
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

WAITING = re.compile(r"^waiting for server .*\n", re.MULTILINE)
"""What a run says on a machine on which its servers are slow to start."""
VARYING = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z|\d+\.\d{3} s|(?<=decision )\w{8}|"
    r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"
)
"""What differs between two runs: times, durations and ids."""


@dataclass(frozen=True)
class Shown:
    command: str
    output: str


def blocks(document: str, language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", document, re.MULTILINE | re.DOTALL)


def shown(block: str) -> list[Shown]:
    """Return the commands of a console block, each with what it prints."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [Shown(command, output) for command, _, output in (p.partition("\n") for p in parts)]


def shell_environment() -> dict[str, str]:
    """Return an environment in which `seriatim` and `python` are ours, and no key is set."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL_", "SERIATIM_")) and not name.endswith("_API_KEY")
    }
    scripts = Path(sys.executable).parent
    return kept | {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}


def run_shell(command: str, here: Path, environment: dict[str, str]) -> str:
    """Return what a command prints, to stdout and stderr."""
    return subprocess.run(
        command,
        shell=True,
        cwd=here,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=100,
    ).stdout


def expect_shown(block: str, here: Path, environment: dict[str, str]) -> None:
    """Run the commands of a console block one after the other, and compare what they print."""
    checker = doctest.OutputChecker()
    for step in shown(block):
        printed = WAITING.sub("", run_shell(step.command, here, environment))
        printed = VARYING.sub("~", printed)
        wanted = VARYING.sub("~", step.output)
        assert checker.check_output(
            wanted.strip() + "\n", printed.strip() + "\n", doctest.ELLIPSIS
        ), f"$ {step.command}\nprinted\n{printed}\ninstead of\n{wanted}"
