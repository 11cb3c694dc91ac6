"""What the packages offer; a change here is a change of what users may rely on."""

import importlib
import pkgutil
from types import ModuleType

import pytest

import interceptors
import seriatim.runtime
import seriatim.topology
import telemetry

INTERCEPTORS = [
    "DEFAULT_TIMEOUT",
    "NOBODY",
    "NO_RULES",
    "UNKNOWN_TO_ALL",
    "AgentId",
    "Allowed",
    "Ask",
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
    "Dialogue",
    "Execution",
    "Failed",
    "Failure",
    "GateUnavailable",
    "Handler",
    "InputRequired",
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
    "RULES",
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
    "ToolChangedError",
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

RUNTIME = [
    "Engines",
    "GovernedAgent",
    "NO_LIMIT",
    "Observers",
    "Request",
    "Run",
    "assemble",
    "governed_mcp_call",
    "open_run",
]

TELEMETRY = [
    "EventForm",
    "ExecutionTimer",
    "ExecutionTimes",
    "KnownNames",
    "MetricsInterceptor",
    "Recoveries",
    "RecoveryInterceptor",
    "RunSpans",
    "Telemetry",
    "TelemetrySettingError",
    "TracingInterceptor",
    "as_span_event",
    "caller_context",
    "current_trace",
    "no_telemetry",
    "observe_audit_queue",
    "record_refusal",
    "record_response",
    "start_telemetry",
]

TOPOLOGY = [
    "Agent",
    "Broken",
    "Code",
    "DEFAULT_SETTINGS",
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

OFFERED = {
    interceptors: INTERCEPTORS,
    seriatim.runtime: RUNTIME,
    seriatim.topology: TOPOLOGY,
    telemetry: TELEMETRY,
}
each_package = pytest.mark.parametrize("package", OFFERED, ids=lambda package: package.__name__)


@each_package
def test_a_package_offers_exactly_these_names(package: ModuleType) -> None:
    assert sorted(package.__all__) == sorted(OFFERED[package])


@each_package
def test_every_offered_name_is_there_once(package: ModuleType) -> None:
    assert len(package.__all__) == len(set(package.__all__))
    assert all(hasattr(package, name) for name in package.__all__)


@each_package
def test_every_public_name_of_the_package_is_offered_or_a_module(package: ModuleType) -> None:
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    public = {name for name in vars(package) if not name.startswith("_")}
    assert public - modules == set(package.__all__) - modules


def test_every_module_of_the_chain_adds_to_what_it_offers() -> None:
    for found in pkgutil.iter_modules(interceptors.__path__):
        module = importlib.import_module(f"interceptors.{found.name}")
        assert set(vars(module)) & set(interceptors.__all__), found.name
