"""The colours of problems, where a terminal shows them."""

from typing import Final, TextIO

import typer

from seriatim.cli.voice import takes_colour
from seriatim.topology import Paint, Part, unpainted

_COLOURS: Final = {
    Part.PLACE: typer.colors.BRIGHT_WHITE,
    Part.ERROR: typer.colors.RED,
    Part.WARNING: typer.colors.YELLOW,
    Part.MARGIN: typer.colors.BLUE,
    Part.HINT: typer.colors.CYAN,
}


def paint_for(stream: TextIO) -> Paint:
    """Return how problems are painted that are printed to `stream`."""
    return _coloured if takes_colour(stream) else unpainted


def _coloured(part: Part, text: str) -> str:
    return typer.style(text, fg=_COLOURS[part], bold=part is not Part.MARGIN)
