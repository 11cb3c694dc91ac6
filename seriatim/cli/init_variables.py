"""Environment variables that stand in a written file where a client's file has a value."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from interceptors.redaction import KEYS

REFERENCE: Final = re.compile(r"\$\{([^{}]+)\}")
"""A place in a client's file that the client fills in: `${NAME}`, `${env:NAME}`, `${input:id}`."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_NAME: Final = re.compile(KEYS, re.IGNORECASE)
_SCHEME: Final = re.compile(r"(?:Bearer|Basic|Token) +(?=\S)", re.IGNORECASE)
_ASSIGNED: Final = re.compile(r"(?s)(-{0,2}(?P<name>[\w.-]+)(?:=|: ?))(?P<value>.+)")
_KNOWN_SECRET: Final = re.compile(
    r"\b(?:sk-|ghp_|gho_|ghs_|github_pat_|glpat-|xox[abprs]-|hf_|npm_|AKIA|AIza)[\w-]{8,}"
)
"""Beginnings by which providers mark their keys."""
_USER: Final = re.compile(r"(?<=://)[^/?#@\s]+(?=@)")
_QUERY: Final = re.compile(r"(?<=[?&])([^=&#\s]+)=([^&#\s]+)")


@final
@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that has to be set.

    Attributes:
        whence: what the client's file has it for, for people.
    """

    name: str
    whence: str


class Variables:
    """Gives each value of a client's file a variable, and remembers which.

    Args:
        questions: what VS Code would ask the user, by the id of the input.
    """

    def __init__(self, questions: Mapping[str, str]) -> None:
        self._questions: Final = questions
        self._known: Final[dict[str, Variable]] = {}
        self._values: Final[dict[str, str]] = {}
        self._fallbacks: Final[dict[str, str]] = {}

    @property
    def all(self) -> tuple[Variable, ...]:
        """The variables, in the order in which they were met."""
        return tuple(self._known.values())

    def environment(self, environ: Mapping[str, str]) -> Mapping[str, str]:
        """Return an environment with the values of the client's file; they are not to be shown."""
        known = {**self._fallbacks, **environ}
        values = {
            name: REFERENCE.sub(lambda found: known.get(found[1], found[0]), value)
            for name, value in self._values.items()
        }
        return {**known, **values}

    def plain(self, text: str, whence: str) -> str:
        """Return a text with the client's own references as ours."""
        return REFERENCE.sub(lambda found: self._referred(found[1], whence), text)

    def hidden(self, text: str, wish: str, whence: str) -> str:
        """Return what stands for a value that may be a secret: nothing of it but references."""
        seen = set(self._known)
        converted = self.plain(text, whence)
        scheme = _SCHEME.match(converted)
        before = scheme[0] if scheme else ""
        rest = converted[len(before) :]
        if not rest or not REFERENCE.sub("", rest).strip():
            return converted
        # What it refers to beside a text of its own goes into the one new variable.
        for name in set(self._known) - seen:
            del self._known[name]
        return before + self._new(wish, whence, rest)

    def argument(self, words: tuple[str, ...], index: int, owner: str) -> str:
        """Return what stands for a word of a command, no secret in it that can be told from text.

        Args:
            owner: the server's id, for names of variables.
        """
        word, whence = words[index], f"an argument of server `{owner}`"
        flag = words[index - 1] if index else ""
        if flag.startswith("-") and "=" not in flag and _SECRET_NAME.search(flag):
            return self.hidden(word, f"{owner}-{flag.strip('-')}", whence)
        assigned = _ASSIGNED.fullmatch(word)
        if assigned and _SECRET_NAME.search(assigned["name"]):
            wish = assigned["name"].strip("-")
            if not wish.isupper():
                wish = f"{owner}-{wish}"
            return assigned[1] + self.hidden(assigned["value"], wish, whence)
        return self.address(word, owner, whence)

    def address(self, text: str, owner: str, whence: str) -> str:
        """Return what stands for a text that may be, or hold, a URL with secrets."""

        def query(found: re.Match[str]) -> str:
            if not _SECRET_NAME.search(found[1]) and found[1].lower() != "key":
                return found[0]
            return f"{found[1]}={self.hidden(found[2], f'{owner}-{found[1]}', whence)}"

        text = _QUERY.sub(query, text)
        text = _USER.sub(lambda found: self.hidden(found[0], f"{owner}-login", whence), text)
        text = _KNOWN_SECRET.sub(lambda found: self._new(f"{owner}-secret", whence, found[0]), text)
        return self.plain(text, whence)

    def _referred(self, inside: str, whence: str) -> str:
        """Return what stands for a client's own reference."""
        kind, colon, rest = inside.partition(":")
        if inside in ("workspaceFolder", "workspaceRoot"):
            # The server starts there.
            return "."
        if inside in ("/", "pathSeparator"):
            return "/"
        if inside == "userHome":
            return self._named("HOME", whence)
        if kind == "input":
            question = self._questions.get(rest, "")
            return self._named(_constant(rest), question or f"the input `{rest}`")
        if kind == "env":
            return self._named(rest, whence)
        if colon and rest.startswith("-"):
            self._fallbacks.setdefault(kind, rest[1:])
            return self._named(kind, f"{whence}, where it has a default")
        return self._named(inside, whence)

    def _named(self, name: str, whence: str) -> str:
        if _NAME.fullmatch(name):
            self._known.setdefault(name, Variable(name, whence))
        return f"${{{name}}}"

    def _new(self, wish: str, whence: str, value: str) -> str:
        """Return a reference to a variable for a value; equal values of one name share it."""
        name = _constant(wish)
        number = 1
        while name in self._known and self._values.get(name) != value:
            number += 1
            name = f"{_constant(wish)}_{number}"
        self._values[name] = value
        return self._named(name, whence)


def _constant(text: str) -> str:
    name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_").upper() or "VALUE"
    return f"_{name}" if name[0].isdigit() else name
