"""Identifiers that sort by the time at which they were made."""

import os
import time
import uuid


def new_id() -> str:
    """Return a fresh UUIDv7 in its usual text form.

    The twelve bits after the millisecond hold its fraction (RFC 9562, section 6.2, method 3), so
    ids made by one process sort by time to about a quarter of a microsecond.
    """
    milliseconds, nanoseconds = divmod(time.time_ns(), 1_000_000)
    fraction = nanoseconds * 4096 // 1_000_000
    tail = int.from_bytes(os.urandom(8)) & ((1 << 62) - 1)
    return str(uuid.UUID(int=milliseconds << 80 | 7 << 76 | fraction << 64 | 0b10 << 62 | tail))
