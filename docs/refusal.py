"""Makes `docs/refusal.svg`: `.venv/bin/python docs/refusal.py`.

The commands are run, on a terminal, in a copy of the example; nothing in the picture is typed in
but the commands.
"""

import io
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
COLUMNS = 116
COMMANDS = (
    "tail -n 4 conventions/topologies/ordered.yaml",
    "seriatim run conventions --topology ordered --script agent.yaml --input 'How to confirm?'",
    "seriatim logs conventions",
)


def on_a_terminal(command: str, here: Path) -> str:
    """Run a command with a terminal for its output, and return what stands there afterwards."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, COLUMNS))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "TERM": "xterm-256color"}
    process = subprocess.Popen(  # noqa: S603  the commands are those above
        shlex.split(command), cwd=here, env=environment, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    written = b""
    try:
        while chunk := os.read(ours, 4096):
            written += chunk
    except OSError:
        pass  # how a terminal says on Linux that nobody writes to it any more
    finally:
        os.close(ours)
    if process.wait() != 0:
        sys.exit(f"`{command}` failed:\n{written.decode()}")
    return written.decode().replace("\r\n", "\n")


def main() -> None:
    """Run the commands, and write the picture."""
    console = Console(width=COLUMNS, record=True, file=io.StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory() as directory:
        here = Path(directory)
        shutil.copytree(
            ROOT / "examples" / "conventions",
            here / "conventions",
            ignore=shutil.ignore_patterns(".seriatim"),
        )
        shutil.move(here / "conventions" / "agent.yaml", here / "agent.yaml")
        for command in COMMANDS:
            console.print(Text(f"$ {command}", style="bold"))
            console.print(Text.from_ansi(on_a_terminal(command, here)))
            console.print()
    picture = console.export_svg(title="seriatim", unique_id="refusal")
    # The fonts that rich names lie on a server; a viewer's own do as well.
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    (ROOT / "docs" / "refusal.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
