"""Tokens that an authorization server has issued (JWT): verified, and led to a registration."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import jwt

from interceptors import AgentId, RunId
from seriatim.runtime.gateway.bearer import TurnedAway, Verify, invalid
from seriatim.runtime.gateway.keys import Keys, KeysUnavailableError, UnknownKeyError
from seriatim.runtime.gateway.register import Entry, Obstacle, Register, RegistrationError
from seriatim.runtime.plugins import InterceptorError
from seriatim.runtime.run import RUN_ID
from seriatim.topology.durations import LONGEST
from seriatim.topology.models import Auth

_REQUIRED: Final = ["exp", "iss", "aud"]

_WHY: Final[Mapping[type[Exception], str]] = {
    jwt.ExpiredSignatureError: "the token has expired; get a new one",
    jwt.ImmatureSignatureError: "the token is not valid yet",
    jwt.InvalidAudienceError: "the token is not meant for this gateway (its audience is another)",
    jwt.InvalidIssuerError: "the token is from an issuer that this gateway does not know",
    jwt.InvalidAlgorithmError: "the token is signed in a way that this gateway does not take",
    jwt.InvalidSignatureError: "the token's signature is wrong",
}
"""What is said of a token that is not taken; of any other, that it is no valid token."""


def is_issued(token: str) -> bool:
    """Return whether a token has the form of a signed one; those of a register never have."""
    return token.count(".") == 2


class Issued:
    """Takes the tokens of one authorization server for the registrations that they name."""

    def __init__(self, auth: Auth, keys: Keys, register: Register) -> None:
        self._auth: Final = auth
        self._keys: Final = keys
        self._register: Final = register

    async def verify(self, token: str) -> Entry | TurnedAway:
        """Return the registration of the agent that a token names, a new one if need be."""
        try:
            claims = await self._claims(token)
        except KeysUnavailableError:
            return TurnedAway(503, "", "tokens cannot be judged at the moment; tell the operator")
        except UnknownKeyError:
            return invalid("the token is signed with a key that its issuer does not have")
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            return invalid(_WHY.get(type(error), "this is no valid token"))
        return await self._registered(claims)

    async def _claims(self, token: str) -> Mapping[str, Any]:
        header = jwt.get_unverified_header(token)
        if header.get("alg") not in self._auth.algorithms:
            raise jwt.InvalidAlgorithmError
        key = header.get("kid", "")
        claims: Mapping[str, Any] = jwt.decode(
            token,
            await self._keys.find(key if isinstance(key, str) else ""),
            algorithms=self._auth.algorithms,
            audience=self._auth.audience,
            issuer=self._auth.issuer,
            leeway=self._auth.leeway,
            options={"require": _REQUIRED},
        )
        return claims

    async def _registered(self, claims: Mapping[str, Any]) -> Entry | TurnedAway:
        auth = self._auth
        value = claims.get(auth.agent_claim)
        if not isinstance(value, str) or not value:
            return _forbidden(f"the token names no agent: it has no claim `{auth.agent_claim}`")
        run = claims.get(auth.run_claim, "") if auth.run_claim else self._register.run
        if not isinstance(run, str) or not RUN_ID.fullmatch(run):
            return _forbidden(f"the token names no run: it needs an id as claim `{auth.run_claim}`")
        agent = auth.agents.get(value, value)
        expires = min(int(claims["exp"]) + auth.leeway, time.time() + LONGEST)
        try:
            return await self._register.claim(RunId(run), AgentId(agent), expires)
        except RegistrationError as error:
            return _obstructed(error.obstacle)
        except InterceptorError:
            return TurnedAway(503, "", "an interceptor cannot be had; tell the operator")


def verify_all(auths: tuple[Auth, ...], directory: Path, register: Register, own: Verify) -> Verify:
    """Return a check for the tokens of the authorization servers, and for those of the register."""
    checks = [Issued(auth, Keys(auth.keys, directory), register) for auth in auths]

    async def verify(token: str) -> Entry | TurnedAway:
        for check in checks:
            if is_issued(token):
                return await check.verify(token)
        return await own(token)

    return verify


def _forbidden(why: str) -> TurnedAway:
    return TurnedAway(403, "insufficient_scope", why)


def _obstructed(obstacle: Obstacle) -> TurnedAway:
    if obstacle is Obstacle.FULL:
        return TurnedAway(503, "", obstacle.value)
    return _forbidden(f"the token's agent cannot be served: {obstacle.value}")
