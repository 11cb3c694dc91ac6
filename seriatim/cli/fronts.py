"""How a gateway is reached, as its options say; each function leaves when they cannot be."""

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from interceptors import AgentId
from seriatim.cli.lines import escaped
from seriatim.cli.voice import FAILED, WRONG_USAGE, say, stop
from seriatim.runtime.gateway.admin import SHORTEST_TOKEN, AdminKey
from seriatim.runtime.gateway.front import Front
from seriatim.runtime.gateway.http import Address, listen
from seriatim.runtime.gateway.register import FOREVER
from seriatim.runtime.gateway.tls import CertificateError, Encryption, Plain, load_tls
from seriatim.topology import Settings
from seriatim.topology.durations import SYNTAX, parse_duration

HIGHEST_PORT: Final = 65535
ADMIN_TOKEN: Final = "SERIATIM_ADMIN_TOKEN"  # noqa: S105  the variable's name, no token
"""The environment variable with the token of the admin API."""


@final
@dataclass(frozen=True, slots=True)
class Stdio:
    """The client is whoever started this process."""

    agent: AgentId


@final
@dataclass(frozen=True, slots=True)
class HttpOptions:
    """The options of `seriatim gateway` that are about HTTP, as they were given."""

    http: str
    ttl: str
    tls_cert: Path | None
    tls_key: Path | None
    admin_token_file: Path | None


def stdio_for(options: HttpOptions, agents: tuple[AgentId, ...]) -> Stdio:
    """Return a front over stdio for the one agent that is named."""
    for name in ("ttl", "tls_cert", "tls_key", "admin_token_file"):
        if getattr(options, name):
            stop(
                f"`--{name.replace('_', '-')}` is for HTTP",
                hint="serve over HTTP with `--http 127.0.0.1:0`, or leave it out",
                code=WRONG_USAGE,
            )
    if not agents:
        stop("no agent is named", hint="name the one to serve with `--agent`", code=WRONG_USAGE)
    if len(agents) > 1:
        stop(
            "over stdio a gateway serves one agent",
            hint="give `--agent` once, or serve over HTTP with `--http 127.0.0.1:0`",
            code=WRONG_USAGE,
        )
    return Stdio(*agents)


def open_http(options: HttpOptions, agents: tuple[AgentId, ...], settings: Settings) -> Front:
    """Return a front that listens where the options say, for agents named or registered later."""
    address = address_of(options)
    lifetime = _lifetime(options.ttl)
    encryption = encryption_of(options)
    admin = _admin_key(options)
    if not (agents or admin or settings.auth):
        stop(
            "no agent is named",
            hint="name one with `--agent`; or give an admin token, or an `auth` section in the "
            "settings, to register agents later",
            code=WRONG_USAGE,
        )
    if isinstance(encryption, Plain) and not address.is_loopback:
        say(
            f"warning: other machines can reach `{address.host}`, and tokens travel to it "
            "unencrypted; give `--tls-cert` and `--tls-key`"
        )
    return Front(address, _listener(address), encryption, admin, lifetime)


def address_of(options: HttpOptions) -> Address:
    """Return where the options say to listen; leaves when that is no address."""
    text = options.http
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) <= HIGHEST_PORT):
        stop(
            f"`{escaped(text)}` is no HOST:PORT",
            hint="write for instance `127.0.0.1:8000`, or port 0 for any free one",
            code=WRONG_USAGE,
        )
    return Address(host, int(port))


def _listener(address: Address) -> socket.socket:
    try:
        return listen(address)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).partition(" (")[0].lower()
        stop(
            f"cannot listen on `{escaped(address.host)}:{address.port}`: {reason}",
            hint="choose another address, or port 0 for any free one",
            code=FAILED,
        )


def _lifetime(text: str) -> float:
    try:
        return parse_duration(text) if text else FOREVER
    except ValueError:
        stop(f"`--ttl {escaped(text)}` is no length of time", hint=SYNTAX, code=WRONG_USAGE)


def encryption_of(options: HttpOptions) -> Encryption:
    """Return whether, and with which certificate, the options say to encrypt."""
    certificate, key = options.tls_cert, options.tls_key
    if certificate is None and key is None:
        return Plain()
    if certificate is None or key is None:
        stop(
            "`--tls-cert` and `--tls-key` belong together",
            hint="give both, or neither",
            code=WRONG_USAGE,
        )
    try:
        return load_tls(certificate, key)
    except CertificateError as error:
        stop(escaped(str(error)), hint=error.hint, code=FAILED)


def _admin_key(options: HttpOptions) -> tuple[AdminKey, ...]:
    path = options.admin_token_file
    if path is None:
        token, source = os.environ.get(ADMIN_TOKEN, ""), f"the environment variable `{ADMIN_TOKEN}`"
        if not token:
            return ()
    else:
        token, source = _token_in(path), f"`{escaped(str(path))}`"
    if len(token) < SHORTEST_TOKEN:
        stop(
            f"{source} holds no admin token of at least {SHORTEST_TOKEN} characters",
            hint="make one with `openssl rand -hex 32`",
            code=FAILED,
        )
    return (AdminKey(token),)


def _token_in(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or "").lower() if isinstance(error, OSError) else "it is no text"
        stop(
            f"cannot read the admin token in `{escaped(str(path))}`: {reason}",
            hint="give a file that holds the token and nothing else",
            code=FAILED,
        )
