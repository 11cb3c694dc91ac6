"""Our own settings: `seriatim.yaml`, or `seriatim:` in a one-file workspace."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final, Literal

from interceptors import RULES, AgentId
from seriatim.topology.auth import read_auth
from seriatim.topology.durations import SYNTAX, parse_duration
from seriatim.topology.exposure import read_exposure
from seriatim.topology.fields import Fields
from seriatim.topology.models import GatewayLimits, InterceptorSetting, Settings
from seriatim.topology.nodes import MapNode, ScalarNode
from seriatim.topology.problems import Location, error, listing, suggestion

DEFAULT_CALLS: Final = 200
"""Calls that a run may make where nobody says otherwise."""

INTERCEPTOR_TIMEOUT: Final = 10.0
"""Seconds that an interceptor may take for itself, as long as a policy or an audit sink may."""

DEFAULT_SETTINGS: Final = Settings((), "closed", None, (), "")

_KEYS: Final = ("audit", "auth", "expose", "fail", "interceptors", "limits", "pin", "redact")
_LIMITS: Final = (
    "calls",
    "calls_in_flight",
    "registrations",
    "request_size",
    "session_idle",
    "sessions",
)
_INTERCEPTOR_KEYS: Final = ("position", "settings", "timeout", "use")
_FAIL: Final[Mapping[str, Literal["closed", "open"]]] = {"closed": "closed", "open": "open"}
_PIN: Final[Mapping[str, bool]] = {"true": True, "false": False}
_POSITION: Final[Mapping[str, Literal["outer", "inner"]]] = {"outer": "outer", "inner": "inner"}


class EnvironmentSettingError(Exception):
    """A `SERIATIM_*` variable holds what its setting does not take.

    Attributes:
        variable: its name.
        hint: what it takes.
    """

    def __init__(self, variable: str, value: str, hint: str) -> None:
        super().__init__(f"`{variable}` may not be `{value}`")
        self.variable: Final = variable
        self.hint: Final = hint


def read_settings(fields: Fields, agents: Collection[AgentId]) -> Settings:
    """Return the settings that a mapping holds, noting what is wrong with them.

    Args:
        agents: the agents of all topologies.
    """
    _only(fields, _KEYS)
    limits = fields.section("limits")
    _only(limits, _LIMITS)
    return Settings(
        interceptors=tuple(_interceptors(fields)),
        fail=fields.choice("fail", _FAIL, "closed"),
        max_calls=_whole(limits, "calls", 0) or None,
        redact=tuple(_patterns(fields)),
        audit=fields.text("audit"),
        pin=fields.choice("pin", _PIN, default=False),
        expose=read_exposure(fields, agents),
        gateway=_gateway_limits(limits),
        auth=read_auth(fields.section("auth")),
    )


def with_environment(settings: Settings, environment: Mapping[str, str]) -> Settings:
    """Return the settings with what `SERIATIM_FAIL`, `_MAX_CALLS`, `_PIN` and `_AUDIT` say instead.

    An empty variable changes nothing.

    Raises:
        EnvironmentSettingError: when one of them holds no value of its setting.
    """
    if fail := environment.get("SERIATIM_FAIL"):
        if fail not in _FAIL:
            raise EnvironmentSettingError("SERIATIM_FAIL", fail, f"it is one of {listing(_FAIL)}")
        settings = replace(settings, fail=_FAIL[fail])
    if calls := environment.get("SERIATIM_MAX_CALLS"):
        if not re.fullmatch("[0-9]{1,9}", calls) or int(calls) == 0:
            hint = "it is a whole number above 0"
            raise EnvironmentSettingError("SERIATIM_MAX_CALLS", calls, hint)
        settings = replace(settings, max_calls=int(calls))
    if pin := environment.get("SERIATIM_PIN"):
        if pin not in _PIN:
            raise EnvironmentSettingError("SERIATIM_PIN", pin, f"it is one of {listing(_PIN)}")
        settings = replace(settings, pin=_PIN[pin])
    return replace(settings, audit=environment.get("SERIATIM_AUDIT") or settings.audit)


def _only(fields: Fields, known: tuple[str, ...]) -> None:
    for name, entry in fields.node.entries.items():
        if name not in known:
            hint = suggestion(name, known, f"the settings are {listing(known)}")
            message = f"there is no setting `{name}`"
            fields.problems.append(error("settings.unknown-key", message, entry.key.at, hint))


def _gateway_limits(limits: Fields) -> GatewayLimits:
    default = GatewayLimits()
    return GatewayLimits(
        registrations=_whole(limits, "registrations", default.registrations),
        calls_in_flight=_whole(limits, "calls_in_flight", default.calls_in_flight),
        sessions=_whole(limits, "sessions", default.sessions),
        session_idle=_seconds(limits, "session_idle", default.session_idle),
        request_size=_whole(limits, "request_size", default.request_size),
    )


def _whole(fields: Fields, name: str, default: int) -> int:
    """Return a field that holds a whole number above zero."""
    number = fields.positive(name, default)
    if number != int(number):
        message = f"`{name}` must be a whole number, and is {number:g}"
        hint = "give a whole number"
        fields.problems.append(error("settings.bad-value", message, fields.place(name), hint))
    return int(number)


def _seconds(fields: Fields, name: str, default: float) -> float:
    """Return a field that holds a length of time, in seconds."""
    text = fields.any_text(name)
    try:
        return parse_duration(text) if text else default
    except ValueError as fault:
        problem = error("settings.bad-value", f"`{name}`: {fault}", fields.place(name), SYNTAX)
        fields.problems.append(problem)
        return default


def _interceptors(fields: Fields) -> Iterable[InterceptorSetting]:
    for item in fields.items("interceptors"):
        match item:
            case ScalarNode(_, _, str() as use) if use:
                _no_rule(fields, use, item.at)
                yield InterceptorSetting(use, "inner", {}, INTERCEPTOR_TIMEOUT)
            case MapNode():
                entry = Fields(item, fields.problems)
                _only(entry, _INTERCEPTOR_KEYS)
                use = entry.required("use", "this interceptor")
                _no_rule(fields, use, entry.place("use"))
                yield InterceptorSetting(
                    use=use,
                    position=entry.choice("position", _POSITION, "inner"),
                    settings=entry.json("settings"),
                    timeout=entry.positive("timeout", INTERCEPTOR_TIMEOUT),
                )
            case _:
                hint = "write `- use: NAME`, where NAME is an entry point or `module:name`"
                fields.mismatch(item, "interceptors", "a list of interceptors", hint)


def _no_rule(fields: Fields, use: str, at: Location) -> None:
    if use in RULES:
        message = f"`{use}` is a rule of the gate, and no interceptor's name"
        hint = "offer the interceptor under another name: its refusals bear it"
        fields.problems.append(error("settings.bad-value", message, at, hint))


def _patterns(fields: Fields) -> Iterable[str]:
    for item in fields.items("redact"):
        match item:
            case ScalarNode(at, _, str() as pattern) if pattern:
                try:
                    # As one of several, which is how it is used.
                    hides_all = re.compile(f"(?:{pattern})").search("") is not None
                except (re.error, OverflowError, RecursionError) as fault:
                    message = f"`{pattern}` is no regular expression: {fault}"
                    hint = "put a `\\` before characters that stand for themselves"
                    fields.problems.append(error("settings.bad-value", message, at, hint))
                    continue
                if hides_all:
                    message = f"`{pattern}` matches the empty text, and so every name"
                    hint = "name what is to be hidden, such as `iban`"
                    fields.problems.append(error("settings.bad-value", message, at, hint))
                    continue
                yield pattern
            case ScalarNode(at, _, str()):
                message = "an empty text matches every name"
                hint = "name what is to be hidden, such as `iban`"
                fields.problems.append(error("settings.bad-value", message, at, hint))
            case _:
                hint = "write regular expressions for names, such as `iban`"
                fields.mismatch(item, "redact", "a list of texts", hint)
