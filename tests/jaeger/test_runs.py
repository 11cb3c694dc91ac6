"""Runs of `seriatim run`, read back from a real Jaeger."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from interceptors import AuditRecord
from seriatim.stores.audit_log import open_audit_log
from tests.jaeger.server import Jaeger, Span, Trace
from tests.support.model_runs import workspace_file

pytestmark = pytest.mark.timeout(120)

SERVICE = "model-runs"
AGENTS = """
agents:
  root:
    id: ann
    role: root
    skills: [list, get, fail, raise, echo]
    requires: {get: [list]}
    children:
      - {id: bob, role: worker, skills: [list, get], requires: {get: [list]}}
"""
SCRIPTS = {
    "learning": """
ann:
  - calls: [{skill: get, arguments: {name: card}}]
  - retry: true
  - calls: [{skill: bob, arguments: {task: look}}, {skill: nope}]
  - say: Cards have one button.
bob:
  - calls: [{skill: list}, {skill: get}]
  - retry: true
  - say: looked
""",
    "failing": """
ann:
  - calls: [{skill: fail}, {skill: raise}]
  - say: It did not work.
""",
    "smooth": """
ann:
  - calls: [{skill: list}]
  - calls: [{skill: get}]
  - say: Done.
""",
}
REFUSED_TO_ANN = (
    "get requires list, which has not been called in this session. Call list first, then retry."
)
REFUSED_TO_BOB = (
    "get requires list, which was called but whose result had not been returned when get was "
    "called. Read the result of list, then retry."
)


@dataclass(frozen=True)
class Seen:
    """A run as its audit log has it, as its trace has it, and what reached the server."""

    rows: list[AuditRecord]
    trace: Trace
    reached: list[dict[str, Any]]

    def calls(self, outcome: str) -> list[AuditRecord]:
        return [
            row for row in self.rows if row.outcome == outcome and "agent." not in row.event_type
        ]

    def span_of(self, row: AuditRecord) -> Span:
        """Return the only span of a row's decision."""
        [span] = self.trace.tagged("seriatim.decision.id", row.decision_id)
        return span


@pytest.fixture(scope="module")
def runs(
    jaeger: Jaeger, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Seen]:
    """The runs of all scripts, each in a process of its own."""
    return {
        name: _run(name, script, jaeger, environment, tmp_path_factory.mktemp(name))
        for name, script in SCRIPTS.items()
    }


def _run(
    name: str, script: str, jaeger: Jaeger, environment: Mapping[str, str], directory: Path
) -> Seen:
    workspace = workspace_file(directory, AGENTS)
    (directory / "script.yaml").write_text(script, encoding="utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "seriatim", "run", workspace, "--run", name),
            *("--script", directory / "script.yaml", "--input", "go", "--otlp", jaeger.otlp),
        ],
        env={**environment, "OTEL_SERVICE_NAME": SERVICE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "telemetry:" not in done.stderr
    with open_audit_log(directory / ".seriatim" / "audit.sqlite3") as log:
        rows = log.records({}, until=log.end())
    [trace] = {row.trace_id for row in rows}
    assert trace is not None
    reached = (directory / "calls").read_text(encoding="utf-8").splitlines()
    # Of each run, the root agent's span ends last, and all arrive in that order.
    return Seen(
        rows, jaeger.trace(trace, "invoke_agent ann"), [json.loads(line) for line in reached]
    )


def test_the_trace_of_a_run_reads_like_its_story(runs: dict[str, Seen]) -> None:
    list_ = ["execute_tool list", ["MCP send tools/call list_conventions"]]
    get = ["execute_tool get", ["MCP send tools/call get_convention"]]
    refused = "execute_tool get"
    asked = "chat scripted"
    bob = ["invoke_agent bob", [[asked, [get]], [asked, [list_, refused]], asked]]
    ann = [
        *([asked, [refused]], [asked, [get]], [asked, [list_]]),
        *([asked, [bob, "execute_tool nope"]], asked),
    ]
    assert runs["learning"].trace.tree() == [["invoke_agent ann", ann]]


def test_the_turns_stand_in_their_order(runs: dict[str, Seen]) -> None:
    trace = runs["learning"].trace
    [ann] = trace.named("invoke_agent ann")
    requests = trace.below(ann)
    assert [span.name for span in requests] == ["chat scripted"] * 5
    assert [[call.name for call in trace.below(request)] for request in requests[:3]] == [
        ["execute_tool get"],
        ["execute_tool list"],
        ["execute_tool get"],
    ]


def test_a_run_is_one_trace(jaeger: Jaeger, runs: dict[str, Seen]) -> None:
    traces = {seen.trace.spans[0].trace for seen in runs.values()}
    assert jaeger.ids(SERVICE, {}) == traces


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_attempt_has_one_span_and_its_row_names_it(runs: dict[str, Seen], name: str) -> None:
    seen = runs[name]
    attempts = [row for row in seen.rows if row.event_type == "skill.executed"]
    spans = [span for span in seen.trace.spans if span.name.startswith("execute_tool ")]
    assert sorted(span.id for span in spans) == sorted(row.span_id or "" for row in attempts)
    for row in attempts:
        span = seen.span_of(row)
        assert (span.trace, span.id) == (row.trace_id, row.span_id)
        assert span.name == f"execute_tool {row.skill}"
        assert span.tags["policy_decision"] == row.policy_decision
        assert span.tags["gen_ai.agent.name"] == row.agent
        assert span.tags["gen_ai.conversation.id"] == row.run
        assert span.tags["gen_ai.tool.call.id"] == row.call_id


def test_the_tag_finds_exactly_what_was_refused(jaeger: Jaeger, runs: dict[str, Seen]) -> None:
    [found] = jaeger.search(SERVICE, {"policy_decision": "deny"})
    refused = runs["learning"].calls("refused")
    assert len(refused) == 3
    tagged = found.tagged("policy_decision", "deny")
    assert sorted(span.id for span in tagged) == sorted(row.span_id or "" for row in refused)


def test_a_refusal_is_no_error_and_nothing_stands_below_it(runs: dict[str, Seen]) -> None:
    seen = runs["learning"]
    for row in seen.calls("refused"):
        span = seen.span_of(row)
        assert "error" not in span.tags
        assert "otel.status_code" not in span.tags
        assert seen.trace.below(span) == []


def test_the_event_says_what_the_row_says(runs: dict[str, Seen]) -> None:
    seen = runs["learning"]
    reasons = []
    for row in seen.calls("refused"):
        [(name, fields)] = seen.span_of(row).events
        assert name == "seriatim.refusal"
        assert fields["policy_decision"] == "deny"
        assert fields["seriatim.decision.id"] == row.decision_id
        assert fields["seriatim.rule.id"] == row.rule
        assert fields["seriatim.reason"] == row.reason
        assert fields["gen_ai.agent.name"] == row.agent
        assert json.loads(fields.get("seriatim.missing", "[]")) == list(row.missing)
        reasons.append((row.agent, row.reason, row.missing))
    assert ("ann", REFUSED_TO_ANN, ("list",)) in reasons
    assert ("bob", REFUSED_TO_BOB, ("list",)) in reasons


@pytest.mark.parametrize("agent", ["ann", "bob"])
def test_a_recovered_call_leads_to_the_refusal_that_taught_it(
    runs: dict[str, Seen], agent: str
) -> None:
    seen = runs["learning"]
    [refused] = [row for row in seen.calls("refused") if (row.agent, row.skill) == (agent, "get")]
    done = [row for row in seen.calls("completed") if row.agent == agent]
    assert {row.skill: seen.span_of(row).links for row in done} == {
        "list": [],
        "get": [(refused.trace_id, refused.span_id)],
    }


def test_an_error_search_finds_failed_tools_alone(jaeger: Jaeger, runs: dict[str, Seen]) -> None:
    seen = runs["failing"]
    [found] = jaeger.search(SERVICE, {"error": "true"})
    assert found.spans[0].trace == seen.trace.spans[0].trace
    ours = [span for span in found.tagged("error", True) if span.name.startswith("execute_tool")]
    failed = seen.calls("failed")
    assert sorted(span.id for span in ours) == sorted(row.span_id or "" for row in failed)
    for row in failed:
        span = seen.span_of(row)
        assert span.tags["error.type"] == row.error_kind
        assert span.tags["otel.status_code"] == "ERROR"
        assert span.tags["policy_decision"] == "allow"
        assert span.events == []
    assert seen.trace.tagged("policy_decision", "deny") == []


def test_the_server_is_told_of_the_span_that_called_it(runs: dict[str, Seen]) -> None:
    for seen in runs.values():
        told = {call["meta"]["traceparent"].split("-")[2] for call in seen.reached}
        calling = [span for span in seen.trace.spans if span.name.startswith("MCP send tools/call")]
        assert told == {span.id for span in calling}
        assert len(told) == len(seen.reached)
