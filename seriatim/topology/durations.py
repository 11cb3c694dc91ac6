"""Lengths of time as people write them: `90s`, `15m`, `8h`, `7d`, `1h30m`."""

import re
from typing import Final

SYNTAX: Final = "write it like `90s`, `15m`, `8h`, `7d` or `1h30m`"
"""How a length of time is written, as a hint."""

LONGEST: Final = 3650 * 86400
"""Seconds beyond which a length of time is taken for a slip of the pen: ten years."""

_SECONDS: Final = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_FORM: Final = re.compile(
    "".join(f"(?:(?P<{unit}>[0-9]{{1,9}}){unit})?" for unit in _SECONDS), re.ASCII
)


def parse_duration(text: str) -> int:
    """Return the seconds that `text` means.

    Raises:
        ValueError: when it is written otherwise, is nothing, or is longer than ten years.
    """
    match = _FORM.fullmatch(text)
    parts = match.groupdict(default="0") if match else {}
    seconds = sum(int(number) * _SECONDS[unit] for unit, number in parts.items())
    if not 0 < seconds <= LONGEST:
        raise ValueError(f"`{text}` is no length of time")
    return seconds
