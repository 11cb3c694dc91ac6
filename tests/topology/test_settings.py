from collections.abc import Callable

import pytest

from interceptors import AgentId
from seriatim.topology import (
    DEFAULT_SETTINGS,
    EnvironmentSettingError,
    InterceptorSetting,
    Settings,
    Workspace,
    with_environment,
)
from seriatim.topology.models import Exposed, GatewayLimits

AGENTS = "agents: {root: {id: r}}\n"


def test_without_settings_the_defaults_hold(workspace_of: Callable[[str], Workspace]) -> None:
    assert workspace_of(AGENTS).settings == DEFAULT_SETTINGS == Settings((), "closed", None, (), "")


def test_all_settings_are_read(workspace_of: Callable[[str], Workspace]) -> None:
    text = """\
seriatim:
  interceptors:
    - guard
    - {use: "shop:stamp", position: outer, settings: {colour: red, levels: [1, 2]}, timeout: 3}
  fail: open
  limits:
    {calls: 12, registrations: 20, calls_in_flight: 3, sessions: 4,
     session_idle: 10m, request_size: 1024}
  redact: [iban, "tax.?id"]
  audit: logs/audit.sqlite3
  pin: true
"""
    assert workspace_of(AGENTS + text).settings == Settings(
        interceptors=(
            InterceptorSetting("guard", "inner", {}, 10),
            InterceptorSetting("shop:stamp", "outer", {"colour": "red", "levels": [1, 2]}, 3),
        ),
        fail="open",
        max_calls=12,
        redact=("iban", "tax.?id"),
        audit="logs/audit.sqlite3",
        pin=True,
        gateway=GatewayLimits(20, 3, 4, 600, 1024),
    )


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ("[x]", "2:11 schema.type-mismatch"),
        ("{fial: open}", "2:12 settings.unknown-key"),
        ("{fail: opened}", "2:18 schema.enum-mismatch"),
        ("{limits: {call: 3}}", "2:21 settings.unknown-key"),
        ("{limits: {calls: 0}}", "2:28 schema.bad-value"),
        ("{limits: {calls: 2.5}}", "2:28 settings.bad-value"),
        ("{limits: {calls: many}}", "2:28 schema.type-mismatch"),
        ("{limits: {calls: true}}", "2:28 schema.type-mismatch"),
        ("{limits: {sessions: 0}}", "2:31 schema.bad-value"),
        ("{limits: {registrations: 1.5}}", "2:36 settings.bad-value"),
        ("{limits: {session_idle: soon}}", "2:35 settings.bad-value"),
        ("{limits: {session_idle: 30}}", "2:35 settings.bad-value"),
        ("{redact: iban}", "2:20 schema.type-mismatch"),
        ("{redact: ['(']}", "2:21 settings.bad-value"),
        ("{redact: [[x]]}", "2:21 schema.type-mismatch"),
        ("{audit: [x]}", "2:19 schema.type-mismatch"),
        ("{pin: maybe}", "2:17 schema.enum-mismatch"),
        ("{pin: [true]}", "2:17 schema.type-mismatch"),
        ("{expose: tools}", "2:20 schema.type-mismatch"),
        ("{expose: [tools, [x]]}", "2:28 schema.type-mismatch"),
        ("{expose: [tools, prompt]}", "2:28 settings.bad-value"),
        ("{expose: [prompts]}", "2:20 settings.bad-value"),
        ("{expose: []}", "2:20 settings.bad-value"),
        ("{expose: {q: [tools]}}", "2:21 settings.bad-value"),
        ("{expose: {r: tools}}", "2:24 schema.type-mismatch"),
        ("{expose: {r: [tools, tool]}}", "2:32 settings.bad-value"),
        ("{expose: {r: [resources]}}", "2:24 settings.bad-value"),
        ("{interceptors: guard}", "2:26 schema.type-mismatch"),
        ("{interceptors: [3]}", "2:27 schema.type-mismatch"),
        ("{interceptors: [{position: outer}]}", "2:27 schema.required-field"),
        ("{interceptors: [{use: x, position: middle}]}", "2:46 schema.enum-mismatch"),
        ("{interceptors: [{use: x, timeout: -1}]}", "2:45 schema.bad-value"),
        ("{interceptors: [{use: x, setings: {}}]}", "2:36 settings.unknown-key"),
    ],
)
def test_a_setting_that_cannot_be_is_an_error(
    check: Callable[[str], list[str]], settings: str, place: str
) -> None:
    assert check(f"{AGENTS}seriatim: {settings}\n") == [place]


def test_the_environment_goes_before_the_file() -> None:
    environment = {
        "SERIATIM_FAIL": "open",
        "SERIATIM_MAX_CALLS": "3",
        "SERIATIM_AUDIT": "sqlite:///x",
        "SERIATIM_PIN": "true",
        "OTHER": "y",
    }
    changed = with_environment(DEFAULT_SETTINGS, environment)
    assert (changed.fail, changed.max_calls, changed.audit) == ("open", 3, "sqlite:///x")
    assert changed.pin
    assert not with_environment(changed, {"SERIATIM_PIN": "false"}).pin


def test_an_empty_variable_changes_nothing() -> None:
    names = ("FAIL", "MAX_CALLS", "AUDIT", "PIN")
    environment = {f"SERIATIM_{name}": "" for name in names}
    assert with_environment(DEFAULT_SETTINGS, environment) == DEFAULT_SETTINGS


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("SERIATIM_FAIL", "maybe"),
        ("SERIATIM_MAX_CALLS", "0"),
        ("SERIATIM_MAX_CALLS", "1e3"),
        ("SERIATIM_PIN", "perhaps"),
    ],
)
def test_a_variable_that_holds_no_value_of_its_setting_is_named(variable: str, value: str) -> None:
    with pytest.raises(EnvironmentSettingError, match=f"`{variable}` may not be `{value}`"):
        with_environment(DEFAULT_SETTINGS, {variable: value})


TOOLS, RESOURCES, PROMPTS = Exposed.TOOLS, Exposed.RESOURCES, Exposed.PROMPTS


@pytest.mark.parametrize(
    ("written", "to_r", "to_another"),
    [
        ("", {TOOLS}, {TOOLS}),
        ("seriatim: {expose: }", {TOOLS}, {TOOLS}),
        ("seriatim: {expose: [tools]}", {TOOLS}, {TOOLS}),
        (
            "seriatim: {expose: [prompts, tools, resources]}",
            {TOOLS, RESOURCES, PROMPTS},
            {TOOLS, RESOURCES, PROMPTS},
        ),
        ("seriatim: {expose: {r: [tools, prompts]}}", {TOOLS, PROMPTS}, {TOOLS}),
        ("seriatim: {expose: {r: }}", {TOOLS}, {TOOLS}),
    ],
)
def test_what_is_exposed_is_said_for_all_agents_or_for_each(
    workspace_of: Callable[[str], Workspace],
    written: str,
    to_r: set[Exposed],
    to_another: set[Exposed],
) -> None:
    exposure = workspace_of(AGENTS + written).settings.expose
    assert exposure.to(AgentId("r")) == to_r
    assert exposure.to(AgentId("another")) == to_another
