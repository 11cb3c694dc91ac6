"""Topologies: read with the place of everything, checked, and resolved."""

from seriatim.topology.layout import NothingToValidateError
from seriatim.topology.models import (
    Agent,
    Effect,
    Executor,
    Harness,
    HarnessExecutor,
    HttpTransport,
    InterceptorSetting,
    ModelChoice,
    ModelExecutor,
    ServerDefinition,
    Settings,
    Skill,
    StdioTransport,
    Topology,
    Transport,
    Workspace,
)
from seriatim.topology.permits import permit_of
from seriatim.topology.problems import Code, Location, Problem, Related, Severity
from seriatim.topology.report import Paint, Part, as_json, as_text, summary, unpainted
from seriatim.topology.resolver import (
    Broken,
    Loaded,
    Sound,
    TopologyProblemsError,
    load,
    load_workspace,
)
from seriatim.topology.settings import (
    DEFAULT_SETTINGS,
    EnvironmentSettingError,
    with_environment,
)

__all__ = [
    "DEFAULT_SETTINGS",
    "Agent",
    "Broken",
    "Code",
    "Effect",
    "EnvironmentSettingError",
    "Executor",
    "Harness",
    "HarnessExecutor",
    "HttpTransport",
    "InterceptorSetting",
    "Loaded",
    "Location",
    "ModelChoice",
    "ModelExecutor",
    "NothingToValidateError",
    "Paint",
    "Part",
    "Problem",
    "Related",
    "ServerDefinition",
    "Settings",
    "Severity",
    "Skill",
    "Sound",
    "StdioTransport",
    "Topology",
    "TopologyProblemsError",
    "Transport",
    "Workspace",
    "as_json",
    "as_text",
    "load",
    "load_workspace",
    "permit_of",
    "summary",
    "unpainted",
    "with_environment",
]
