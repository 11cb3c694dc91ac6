"""What the packages offer; a change here is a change of what users may rely on."""

import importlib
import pkgutil
from types import ModuleType

import pytest

import interceptors

INTERCEPTORS = [
    "DEFAULT_TIMEOUT",
    "NO_RULES",
    "UNKNOWN_TO_ALL",
    "AgentId",
    "Allowed",
    "Attempt",
    "AuditInterceptor",
    "AuditRecord",
    "AuditSink",
    "BrokenArguments",
    "CallId",
    "Cancelled",
    "Completed",
    "DecisionId",
    "Denied",
    "Execution",
    "Failed",
    "Failure",
    "GateUnavailable",
    "Handler",
    "Interceptor",
    "InvalidArguments",
    "IsolatedInterceptor",
    "JsonObject",
    "JsonValue",
    "Ledger",
    "LimitReached",
    "MemoryAuditSink",
    "MemoryLedger",
    "Missing",
    "NoTool",
    "NotGranted",
    "Outcome",
    "PermissionDenied",
    "PermissionInterceptor",
    "Permit",
    "Policy",
    "PrerequisiteInterceptor",
    "Progress",
    "ProtocolError",
    "Raised",
    "Redactor",
    "Refusal",
    "Refused",
    "Rules",
    "RunId",
    "Scope",
    "ServerProtocolError",
    "ServerUnavailable",
    "ServerUnavailableError",
    "Servers",
    "SkillId",
    "SkillState",
    "Standing",
    "StandingUnavailable",
    "Tier",
    "TierPolicy",
    "TimedOut",
    "ToolCall",
    "ToolError",
    "ToolRef",
    "ToolResult",
    "TraceIds",
    "UnmetPrerequisites",
    "Unrecorded",
    "Verdict",
    "Via",
    "Withheld",
    "compose",
    "error_kind",
    "failure_text",
    "judge",
    "new_id",
    "no_progress",
    "no_trace",
    "printable",
    "refusal_text",
    "rule_name",
    "text_of",
    "timestamp",
]

FACADES = [interceptors]
"""Packages whose names are imported from the package itself."""


def test_interceptors_offers_exactly_these_names() -> None:
    assert sorted(interceptors.__all__) == sorted(INTERCEPTORS)


@pytest.mark.parametrize("package", FACADES, ids=lambda package: package.__name__)
def test_every_offered_name_is_there_once(package: ModuleType) -> None:
    assert len(package.__all__) == len(set(package.__all__))
    assert all(hasattr(package, name) for name in package.__all__)


@pytest.mark.parametrize("package", FACADES, ids=lambda package: package.__name__)
def test_every_public_name_of_the_package_is_offered_or_a_module(package: ModuleType) -> None:
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    public = {name for name in vars(package) if not name.startswith("_")}
    assert public - modules == set(package.__all__) - modules


@pytest.mark.parametrize("package", FACADES, ids=lambda package: package.__name__)
def test_every_module_of_the_package_adds_to_what_it_offers(package: ModuleType) -> None:
    for found in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{found.name}")
        assert set(vars(module)) & set(package.__all__), found.name
