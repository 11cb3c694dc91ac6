"""The admin API: registrations are made, listed and ended over HTTP, under a token of its own."""

import hashlib
import hmac
import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, assert_never, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from interceptors import AgentId, JsonValue, RunId, timestamp
from seriatim.runtime.gateway.bearer import NO_TOKEN, challenge, invalid, token_of
from seriatim.runtime.gateway.register import FOREVER, Entry, Obstacle, Register, RegistrationError
from seriatim.runtime.gateway.request_body import BodyTooLargeError, BodyTooSlowError, read_body
from seriatim.runtime.plugins import InterceptorError
from seriatim.runtime.run import RUN_ID
from seriatim.topology.durations import SYNTAX, parse_duration

PATH: Final = "/registrations"
LARGEST_BODY: Final = 16 * 1024
"""Bytes of a request's body; what can be asked for takes a few hundred."""
BODY_SECONDS: Final = 10.0
"""In which the body of a request has to arrive."""
SHORTEST_TOKEN: Final = 16
"""Characters below which an admin token could be guessed."""

_log: Final = logging.getLogger(__name__)


@final
class AdminKey:
    """Tells the admin token from any other, and keeps none."""

    def __init__(self, token: str) -> None:
        self._digest: Final = _digest(token)

    def opens(self, token: str) -> bool:
        """Return whether this is the token, in a time that says nothing of it."""
        return hmac.compare_digest(_digest(token), self._digest)


class _Wanted(BaseModel):
    """What `POST /registrations` asks for."""

    model_config = ConfigDict(extra="forbid", strict=True)

    agent: str = Field(min_length=1, max_length=256)
    run: str = Field(default="", pattern=rf"^(?:{RUN_ID.pattern})?$")
    ttl: str = Field(default="", max_length=32)


@final
class AdminApi:
    """Answers requests about the register.

    Args:
        url: where agents reach the gateway.
        lifetime: seconds that a registration lives whose request names none, or `FOREVER`.
    """

    def __init__(self, key: AdminKey, register: Register, url: str, lifetime: float) -> None:
        self._key: Final = key
        self._register: Final = register
        self._url: Final = url
        self._lifetime: Final = lifetime

    def routes(self) -> tuple[Route, ...]:
        """Return where the API is."""
        return (
            Route(PATH, self._create, methods=["POST"]),
            Route(PATH, self._list, methods=["GET"]),
            Route(f"{PATH}/{{id}}", self._end, methods=["DELETE"]),
        )

    async def _create(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        try:
            body = await read_body(request.scope, request.receive, LARGEST_BODY, BODY_SECONDS)
            wanted = _Wanted.model_validate_json(body)
            lifetime = parse_duration(wanted.ttl) if wanted.ttl else self._lifetime
            run = RunId(wanted.run) or self._register.run
            entry, token = await self._register.issue(run, AgentId(wanted.agent), lifetime)
        except (ValidationError, BodyTooLargeError, BodyTooSlowError) as error:
            return _not_understood(error)
        except ValueError as error:
            return _error(400, "bad-request", f"`ttl`: {error}; {SYNTAX}")
        except RegistrationError as error:
            return _obstructed(error.obstacle)
        except InterceptorError as error:
            _log.error("%s", error)
            return _error(500, "interceptor", "an interceptor of the workspace cannot be had")
        answer = described(entry, self._url) | {"token": token}
        return JSONResponse(answer, 201, headers={"cache-control": "no-store"})

    async def _list(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        entries = self._register.entries()
        return JSONResponse({"registrations": [described(entry, self._url) for entry in entries]})

    async def _end(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        if await self._register.end(request.path_params["id"]):
            return Response(status_code=204)
        return _error(404, "unknown-registration", "there is no registration of this id")

    def _refusal(self, request: Request) -> Response | None:
        token = token_of(request.scope)
        if self._key.opens(token):
            return None
        return challenge(invalid("this is not the admin token") if token else NO_TOKEN, "")


def described(entry: Entry, url: str) -> dict[str, JsonValue]:
    """Return what may be told of a registration: all but its token."""
    ends = entry.expires != FOREVER
    expires = timestamp(datetime.fromtimestamp(entry.expires, UTC)) if ends else None
    return {
        "id": entry.registration.id,
        "url": url,
        "run": entry.scope.run,
        "agent": entry.scope.agent,
        "expires": expires,
    }


def _not_understood(error: ValidationError | BodyTooLargeError | BodyTooSlowError) -> Response:
    match error:
        case ValidationError():
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"]))
            message = f"`{place}`: {first['msg']}" if place else first["msg"]
            return _error(400, "bad-request", message)
        case BodyTooLargeError():
            return _error(413, "too-large", f"the request is larger than {LARGEST_BODY} bytes")
        case BodyTooSlowError():
            return _error(408, "too-slow", f"the request took more than {BODY_SECONDS:g} seconds")
        case _:
            assert_never(error)


def _obstructed(obstacle: Obstacle) -> Response:
    match obstacle:
        case Obstacle.UNKNOWN_AGENT:
            return _error(404, "unknown-agent", obstacle.value)
        case Obstacle.TAKEN:
            return _error(409, "registered", obstacle.value)
        case Obstacle.FULL:
            return _error(429, "full", obstacle.value)
        case _:
            assert_never(obstacle)


def _error(status: int, code: str, message: str) -> Response:
    body: Mapping[str, JsonValue] = {"error": code, "message": message}
    return Response(json.dumps(body), status, media_type="application/json")


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
