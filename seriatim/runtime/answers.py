"""What whoever gives an agent a task gets back: an answer, or why there is none."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

Ask: TypeAlias = Callable[[str], Awaitable[str]]
"""Takes a task to an agent's answer; raises `NoAnswerError` when there is none."""


class NoAnswerError(Exception):
    """What drives an agent gave no answer; the message says whose, and why, and holds no secret."""
