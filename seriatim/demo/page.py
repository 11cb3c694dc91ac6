"""How the demo looks: prose fits the terminal, and what a command printed stands as it was."""

from collections.abc import Mapping, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

WIDEST: Final = 92
"""Columns beyond which prose is hard to read."""


class Page:
    """Writes to stdout; in colour on a terminal only."""

    def __init__(self) -> None:
        self._console: Final = Console(highlight=False, markup=False, emoji=False)

    def heading(self, text: str) -> None:
        """Begin a part."""
        self._console.print()
        self._console.print(Text(text, style="bold"))
        self._console.print()

    def prose(self, text: str) -> None:
        """Write a paragraph, wrapped."""
        self._console.print(text, width=min(self._console.width, WIDEST))
        self._console.print()

    def command(self, shown: str) -> None:
        """Write a command that is being run."""
        self._verbatim(f"$ {shown}", "cyan")

    def suggestion(self, text: str, shown: str) -> None:
        """Write a command that the reader may run."""
        self._console.print(text, width=min(self._console.width, WIDEST))
        self._verbatim(f"  {shown}", "cyan")
        self._console.print()

    def output(self, text: str) -> None:
        """Write what a command printed."""
        for line in text.rstrip("\n").splitlines():
            self._verbatim(line, "bold yellow" if "REFUSED" in line else "dim")
        self._console.print()

    def file(self, lines: list[str]) -> None:
        """Write lines of a file, those marked `+` as new."""
        for line in lines:
            self._verbatim(line, "green" if line.startswith("+") else "")
        self._console.print()

    def table(self, heads: Sequence[str], rows: Mapping[str, Sequence[int]]) -> None:
        """Write named rows of figures, one under each head."""
        widest = max(len(name) for name in rows)
        self._verbatim("  ".join([" " * widest, *heads]), "bold")
        for name, figures in rows.items():
            cells = [f"{figure:>{len(head)}}" for head, figure in zip(heads, figures, strict=True)]
            self._verbatim("  ".join([f"{name:<{widest}}", *cells]), "")
        self._console.print()

    def refusal(self, text: str) -> None:
        """Write a refusal's text on a line of its own, unbroken."""
        self._verbatim(text, "bold yellow")
        self._console.print()

    def found(self, text: str) -> None:
        """Write what has been shown."""
        self._console.print(Text(f"=> {text}", style="bold green"), width=self._console.width)
        self._console.print()

    def _verbatim(self, line: str, style: str) -> None:
        self._console.print(Text(line, style=style), soft_wrap=True)
