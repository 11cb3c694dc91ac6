"""The public keys of an issuer of tokens: fetched, kept for a while, and never for ever."""

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import httpx2
import jwt

LIFE: Final = 600.0
"""Seconds after which keys are fetched anew; a key that its issuer withdraws opens nothing then."""
PAUSE: Final = 10.0
"""Seconds between two fetches, whatever tokens come."""
FETCH_SECONDS: Final = 5.0
"""In which an issuer has to answer."""
LARGEST: Final = 1024 * 1024
"""Bytes that a set of keys may have; real ones have a few thousand."""

_log: Final = logging.getLogger(__name__)


class KeysUnavailableError(Exception):
    """The keys cannot be had, so no token can be judged."""


class UnknownKeyError(Exception):
    """The issuer has no such key."""


class Keys:
    """The keys of one issuer, by id.

    Args:
        source: an `http(s)` URL, or a file.
        directory: what a file is relative to.
        clock: tells seconds that only grow.
    """

    def __init__(
        self, source: str, directory: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._source: Final = source
        self._directory: Final = directory
        self._clock: Final = clock
        self._lock: Final = anyio.Lock()
        self._keys: Mapping[str, jwt.PyJWK] = {}
        self._fetched = self._tried = -LIFE

    async def find(self, key: str) -> jwt.PyJWK:
        """Return the key of that id; a token may name none where the issuer has but one key.

        Raises:
            KeysUnavailableError: when there are no keys that are fresh enough.
            UnknownKeyError: when none of them is meant.
        """
        async with self._lock:
            if self._age() >= LIFE or (key and key not in self._keys):
                await self._refresh()
        if self._age() >= LIFE:
            raise KeysUnavailableError
        if not key and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        if key not in self._keys:
            raise UnknownKeyError
        return self._keys[key]

    def _age(self) -> float:
        return self._clock() - self._fetched

    async def _refresh(self) -> None:
        if self._clock() - self._tried < PAUSE:
            return
        self._tried = self._clock()
        try:
            with anyio.fail_after(FETCH_SECONDS):
                self._keys = _signing_keys(await self._fetch())
        except Exception as error:  # noqa: BLE001  whatever is wrong with them, there are no keys
            # In the operator's ear: whoever sent the token cannot help it.
            _log.error(
                "the keys at `%s` cannot be had, tokens are refused without them: %s",
                self._source,
                error or type(error).__name__,
            )
        else:
            self._fetched = self._clock()

    async def _fetch(self) -> bytes:
        if urlsplit(self._source).scheme not in ("http", "https"):
            return await anyio.Path(self._directory / self._source).read_bytes()
        body = b""
        async with (
            httpx2.AsyncClient(timeout=FETCH_SECONDS) as http,
            http.stream("GET", self._source) as answer,
        ):
            answer.raise_for_status()
            async for chunk in answer.aiter_bytes():
                body += chunk
                if len(body) > LARGEST:
                    raise ValueError(f"there are more than {LARGEST} bytes")
        return body


def _signing_keys(body: bytes) -> Mapping[str, jwt.PyJWK]:
    found: Any = jwt.PyJWKSet.from_json(body.decode()).keys
    return {key.key_id or "": key for key in found if key.public_key_use in (None, "sig")}
