"""`auth:` in our settings: whose tokens a gateway takes beside its own, and whom they name."""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from seriatim.topology.durations import SYNTAX, parse_duration
from seriatim.topology.fields import Fields
from seriatim.topology.models import Auth
from seriatim.topology.nodes import ScalarNode
from seriatim.topology.problems import error, listing, suggestion

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""What a token may be signed with: key pairs alone, so that who can check one cannot make one."""
DEFAULT_ALGORITHMS: Final = ("RS256", "ES256", "EdDSA")
DEFAULT_LEEWAY: Final = 30.0
"""Seconds by which the clocks of issuer and gateway may differ."""
DEFAULT_CLAIM: Final = "seriatim_agent"
"""The claim that names the agent where nobody says otherwise."""

KEYS: Final = ("agents", "algorithms", "audience", "claims", "issuer", "keys", "leeway")
CLAIMS: Final = ("agent", "run")

URL: Final = re.compile(
    r"https?://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/[!-~]*)?"
)

_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


def read_auth(fields: Fields) -> tuple[Auth, ...]:
    """Return what an `auth:` section says in a tuple of one, or nothing without one."""
    if not fields.node.entries:
        return ()
    claims = fields.section("claims")
    for section, known in ((fields, KEYS), (claims, CLAIMS)):
        _only(section, known)
    return (
        Auth(
            issuer=_issuer(fields),
            audience=_audience(fields),
            keys=_keys(fields),
            algorithms=tuple(_algorithms(fields)) or DEFAULT_ALGORITHMS,
            leeway=_leeway(fields),
            agent_claim=claims.text("agent") or DEFAULT_CLAIM,
            run_claim=claims.text("run"),
            agents=fields.table("agents"),
        ),
    )


def _only(fields: Fields, known: tuple[str, ...]) -> None:
    for name, entry in fields.node.entries.items():
        if name not in known:
            hint = suggestion(name, known, f"the settings here are {listing(known)}")
            message = f"there is no setting `{name}`"
            fields.problems.append(error("settings.unknown-key", message, entry.key.at, hint))


def _issuer(fields: Fields) -> str:
    issuer = fields.required("issuer", "`auth`")
    if issuer and not URL.fullmatch(issuer):
        _no_url(fields, "issuer", issuer)
    return issuer


def _audience(fields: Fields) -> str:
    """Return the audience: a name, or the URL by which clients know the gateway."""
    audience = fields.required("audience", "`auth`")
    if "://" in audience and not URL.fullmatch(audience):
        _no_url(fields, "audience", audience)
    return audience


def _no_url(fields: Fields, name: str, value: str) -> None:
    hint = "write it like `https://id.example/realm`"
    problem = error(
        "settings.bad-value", f"`{value}` is no `https://` URL", fields.place(name), hint
    )
    fields.problems.append(problem)


def _keys(fields: Fields) -> str:
    keys = fields.required("keys", "`auth`")
    if "://" not in keys:
        return keys
    parts = urlsplit(keys) if URL.fullmatch(keys) else urlsplit("")
    if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
        message = f"`{keys}` is no place from which keys can be had safely"
        hint = "give an `https://` URL, or a file"
        at = fields.place("keys")
        fields.problems.append(error("settings.bad-value", message, at, hint))
    return keys


def _algorithms(fields: Fields) -> Iterable[str]:
    for item in fields.items("algorithms"):
        match item:
            case ScalarNode(_, str() as name) if name in ALGORITHMS:
                yield name
            case ScalarNode(at, name):
                message = f"tokens signed with `{name}` are not taken"
                hint = suggestion(name, ALGORITHMS, f"it is one of {listing(ALGORITHMS)}")
                fields.problems.append(error("settings.bad-value", message, at, hint))
            case _:
                fields.mismatch(item, "algorithms", "a list of names", "write `[RS256, ES256]`")


def _leeway(fields: Fields) -> float:
    text = fields.any_text("leeway")
    try:
        return parse_duration(text) if text else DEFAULT_LEEWAY
    except ValueError as fault:
        problem = error("settings.bad-value", f"`leeway`: {fault}", fields.place("leeway"), SYNTAX)
        fields.problems.append(problem)
        return DEFAULT_LEEWAY
