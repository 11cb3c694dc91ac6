"""What may be shown of arguments and results: secrets out, sizes bounded."""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from interceptors.calls import JsonObject, JsonValue

REDACTED: Final = "[redacted]"
KEYS: Final = "pass|secret|token|api.?key|auth|cookie|credential"
"""Names whose values are never shown (DESIGN.md, section 4)."""

INPUT_BYTES: Final = 8 * 1024
PREVIEW_BYTES: Final = 2 * 1024
SHORTEST_SECRET: Final = 8
"""Characters below which a value from the environment is too common a text to be blotted out."""
DEEPEST: Final = 64
"""Levels of nesting that are shown."""


class Redactor:
    """Blots secrets out of values and texts. Immutable; made once a run.

    Args:
        secrets: values that must not be shown anywhere; those under 8 characters are left alone.
        keys: regular expressions for further names whose values are never shown.

    """

    def __init__(self, secrets: Iterable[str] = (), keys: Iterable[str] = ()) -> None:
        names = "|".join([KEYS, *keys])
        self._key: Final = re.compile(names, re.IGNORECASE)
        self._assignment: Final = re.compile(
            rf"""(?P<name>[\w.-]*(?:{names})[\w.-]*["']?\s*[:=]\s*)"""
            r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|(?!\[redacted\])[^\s,;&"'}]+)""",
            re.IGNORECASE,
        )
        self._bearer: Final = re.compile(r"\bBearer\s+[^\s\"',;]+", re.IGNORECASE)
        known = sorted({s for s in secrets if len(s) >= SHORTEST_SECRET}, key=len, reverse=True)
        self._secret: Final = re.compile("|".join(map(re.escape, known)) or r"(?!)")

    def inputs(self, arguments: JsonObject, names: Collection[str] = ()) -> JsonObject:
        """Return `arguments` without secrets, in at most 8 KiB of JSON.

        Args:
            names: further names whose values are not shown.

        """
        shown = self._value(arguments, frozenset(names), 0)
        text = json.dumps(shown, ensure_ascii=False, default=str)
        if len(text.encode(errors="replace")) <= INPUT_BYTES:
            return shown if isinstance(shown, Mapping) else {}
        return {"truncated": cut(text, INPUT_BYTES - 64), "characters": len(text)}

    def preview(self, text: str, names: Collection[str] = ()) -> str:
        """Return the beginning of `text` without secrets, in at most 2 KiB."""
        # Cut before the search so that a huge result costs little, and with room enough that a
        # secret at the end of the preview is still seen whole.
        return cut(self.text(text[: 8 * PREVIEW_BYTES], names), PREVIEW_BYTES)

    def text(self, text: str, names: Collection[str] = ()) -> str:
        """Return `text` without secrets."""
        if text.lstrip()[:1] in ("{", "["):
            try:
                shown = self._value(json.loads(text), frozenset(names), 0)
                return json.dumps(shown, ensure_ascii=False)
            except (ValueError, RecursionError):
                pass
        return self._assignment.sub(rf"\g<name>{REDACTED}", self._plain(text))

    def _plain(self, text: str) -> str:
        return self._bearer.sub(f"Bearer {REDACTED}", self._secret.sub(REDACTED, text))

    def _value(self, value: JsonValue | JsonObject, names: frozenset[str], depth: int) -> JsonValue:
        if depth > DEEPEST:
            return "…"
        if isinstance(value, str):
            return self._plain(value)
        if isinstance(value, Mapping):
            return {
                self._plain(key): REDACTED
                if key in names or self._key.search(key)
                else self._value(item, names, depth + 1)
                for key, item in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self._value(item, names, depth + 1) for item in value]
        return value


def cut(text: str, limit: int) -> str:
    """Return the longest beginning of `text` that takes at most `limit` bytes, `…` included."""
    encoded = text.encode(errors="replace")
    if len(encoded) <= limit:
        return text
    return encoded[: limit - len("…".encode())].decode(errors="ignore") + "…"
