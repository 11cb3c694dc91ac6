"""Limits of what telemetry carries: how long a text may be, and which names a metric may bear."""

from collections.abc import Collection
from typing import Final, final

from telemetry.conventions import UNKNOWN

TEXT_CHARACTERS: Final = 2048
"""Characters of one attribute; back ends reject or cut spans that carry much more."""
LIST_ITEMS: Final = 64
"""Items of one list attribute."""


def bounded(text: str) -> str:
    """Return the beginning of `text`, fit to be encoded.

    A lone surrogate is replaced: one would make the whole batch of spans unsendable.
    """
    shown = text if len(text) <= TEXT_CHARACTERS else f"{text[: TEXT_CHARACTERS - 1]}…"
    return shown if shown.isascii() else shown.encode(errors="replace").decode()


def bounded_list(texts: Collection[str]) -> tuple[str, ...]:
    """Return the first of `texts`, each bounded, and `…` where some are left out."""
    shown = tuple(bounded(text) for text, _ in zip(texts, range(LIST_ITEMS), strict=False))
    return shown if len(texts) <= LIST_ITEMS else (*shown, "…")


@final
class KnownNames:
    """The names that metrics may bear; whatever else was sent becomes one fixed value.

    Args:
        names: the topology's skills and the names of the configured interceptors.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names: Final = frozenset(names)

    def of(self, name: str) -> str:
        """Return `name`, or the fixed value when it is not known."""
        return name if name in self._names else UNKNOWN
