"""Where the demo's workspace comes from, and where it goes."""

import shutil
from itertools import chain, count
from pathlib import Path
from typing import Final

WORKSPACE: Final = Path(__file__).parent / "workspace"
DEFAULT: Final = Path("seriatim-demo")


class OccupiedError(Exception):
    """The directory that was asked for holds files already."""


def free_place() -> Path:
    """Return the first of `seriatim-demo`, `seriatim-demo-2`, ... that is not there yet."""
    others = (DEFAULT.with_name(f"{DEFAULT.name}-{number}") for number in count(2))
    return next(place for place in chain([DEFAULT], others) if not place.exists())


def unpack(place: Path) -> None:
    """Copy the workspace into a directory that is empty or not there yet.

    Raises:
        OccupiedError: when it is a file, or holds anything.
        OSError: when it cannot be written.
    """
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise OccupiedError
    ignored = shutil.ignore_patterns(".*", "__pycache__")
    shutil.copytree(WORKSPACE, place, ignore=ignored, dirs_exist_ok=True)
