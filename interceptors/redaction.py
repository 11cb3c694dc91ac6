"""What may be shown of arguments and results: secrets out, sizes bounded."""

import json
import math
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
LONGEST_SEARCHED: Final = 8 * PREVIEW_BYTES
"""Characters of one text that are searched for secrets; what is shown is shorter."""
DEEPEST: Final = 64
"""Levels of nesting that are shown."""

_VALUE: Final = (
    r"""(?!\\*["']?\[redacted\])(?:"""
    r""""(?:[^"\\]|\\(?:.|\Z))*(?:"|\Z)"""  # in quotes, or cut off within them
    r"""|'[^']*(?:'|\Z)"""
    r"""|(?P<quote>\\{1,64}["'])(?:(?!(?P=quote)).)*(?:(?P=quote)|\Z)"""  # JSON in JSON
    r"""|[\[{].*"""  # its end is not to be found without a parser: the rest of the text goes
    r"""|(?:(?:basic|bearer|digest|token)\s+)?[^\s,;&"'}\\]+)"""
)
"""What stands behind the name of a secret in a text."""


class Redactor:
    """Blots secrets out of values and texts. Immutable; made once a run.

    Args:
        secrets: values that must not be shown anywhere; those under 8 characters are left alone.
        keys: regular expressions for further names whose values are never shown.
    """

    def __init__(self, secrets: Iterable[str] = (), keys: Iterable[str] = ()) -> None:
        self._names: Final = "|".join([KEYS, *(f"(?:{key})" for key in keys)])
        self._key: Final = re.compile(self._names, re.IGNORECASE)
        self._bearer: Final = re.compile(r"\bBearer\s+[^\s\"',;]+", re.IGNORECASE)
        known = {
            form for secret in secrets if len(secret) >= SHORTEST_SECRET for form in _forms(secret)
        }
        ordered = sorted(known, key=len, reverse=True)
        self._secret: Final = re.compile("|".join(map(re.escape, ordered)) or r"(?!)")
        self._longest: Final = max(map(len, known), default=0)
        self._always: Final = self._assignment(frozenset())

    def inputs(self, arguments: JsonObject, names: Collection[str] = ()) -> JsonObject:
        """Return `arguments` without secrets, in at most 8 KiB of JSON.

        Args:
            names: further names whose values are not shown.
        """
        try:
            shown = self._value(arguments, frozenset(names), 0)
            text = json.dumps(shown, ensure_ascii=False)
        except ValueError:  # an integer of too many digits
            return {"truncated": "…"}
        if len(text.encode()) <= INPUT_BYTES:
            return shown if isinstance(shown, Mapping) else {}
        room = most = INPUT_BYTES - 64
        # Quoting the JSON once more at most doubles it: it holds no control characters.
        while (excess := len(json.dumps(cut(text, room), ensure_ascii=False).encode()) - most) > 0:
            room -= (excess + 1) // 2
        return {"truncated": cut(text, room), "characters": len(text)}

    def preview(self, text: str, names: Collection[str] = ()) -> str:
        """Return the beginning of `text` without secrets, in at most 2 KiB."""
        # Cut before the search so that a huge result costs little; the end of what is searched may
        # hold the first half of a secret, and is not shown.
        searched = 8 * PREVIEW_BYTES + self._longest
        if len(text) <= searched:
            return cut(self.text(text, names), PREVIEW_BYTES)
        shown = self.text(text[:searched], names)
        return cut(shown[: max(0, len(shown) - self._longest)] + "…", PREVIEW_BYTES)

    def text(self, text: str, names: Collection[str] = ()) -> str:
        """Return `text` without secrets."""
        return self._text(text, frozenset(names), 0)

    def plain(self, text: str) -> str:
        """Return `text` without the secrets whose values are known, and without bearer tokens."""
        return self._bearer.sub(f"Bearer {REDACTED}", self._secret.sub(REDACTED, storable(text)))

    def _text(self, text: str, names: frozenset[str], depth: int) -> str:
        if text.lstrip()[:1] in ("{", "["):
            try:
                value = json.loads(text)
                shown = self._value(value, names, depth + 1)
                if shown != value:
                    return json.dumps(shown, ensure_ascii=False)
            except (ValueError, RecursionError):
                pass
        assignment = self._assignment(names) if names else self._always
        return assignment.sub(rf"\g<name>{REDACTED}", self.plain(text))

    def _assignment(self, names: frozenset[str]) -> re.Pattern[str]:
        """Return what finds `name: value`; `re` keeps the patterns that it has compiled."""
        exact = "".join(rf"|\b{re.escape(name)}\b" for name in sorted(names))
        # The bound keeps the search linear on a long text without a space.
        name = rf"""(?P<name>(?:{self._names}{exact})[\w.-]{{0,64}}\\*["']?\s*[:=]\s*)"""
        return re.compile(name + _VALUE, re.IGNORECASE | re.DOTALL)

    def _value(self, value: object, names: frozenset[str], depth: int) -> JsonValue:
        if depth > DEEPEST:
            return "…"
        match value:
            case None | bool():
                return value
            case int() | float():
                shown = str(value)
                if self._secret.search(shown):
                    return REDACTED
                # JSON has no infinity; a store may refuse it.
                return shown if isinstance(value, float) and not math.isfinite(value) else value
            case Mapping():
                return {
                    self.plain(str(key)): REDACTED
                    if key in names or self._key.search(str(key))
                    else self._value(item, names, depth + 1)
                    for key, item in value.items()
                }
            case list() | tuple():
                return [self._value(item, names, depth + 1) for item in value]
            case _:
                return self._shown(str(value), names, depth)

    def _shown(self, text: str, names: frozenset[str], depth: int) -> str:
        """Return a text without secrets; of a long one, more than is ever shown."""
        if len(text) <= LONGEST_SEARCHED:
            return self._text(text, names, depth)
        shown = self._text(text[:LONGEST_SEARCHED], names, depth)
        # The end may hold the first half of a secret.
        return shown[: max(0, len(shown) - self._longest)] + "…"


def _forms(secret: str) -> tuple[str, ...]:
    """Return a secret as it is, and as it stands in a JSON text."""
    return (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])


def storable(text: str) -> str:
    """Return `text` with what some stores refuse, lone surrogates and NUL, as escapes."""
    return text.encode(errors="backslashreplace").decode().replace("\0", r"\x00")


def cut(text: str, limit: int) -> str:
    """Return the longest beginning of `text` that takes at most `limit` bytes, `…` included."""
    encoded = text.encode(errors="replace")
    if len(encoded) <= limit:
        return text
    return encoded[: limit - len("…".encode())].decode(errors="ignore") + "…"
