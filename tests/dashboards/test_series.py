"""The dashboards against a real metrics server: after calls of every kind, all queries give series.

The calls go through the real chain, the points through the real exporter.
"""

import math
import os
import re
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
import yaml

from dashboards.queries import DECISIONS, grown
from interceptors import (
    AgentId,
    AuditRecord,
    BrokenArguments,
    CallId,
    JsonObject,
    MemoryAuditSink,
    RunId,
    Via,
    new_id,
)
from seriatim.runtime.assembly import assemble
from seriatim.runtime.dispatch import NO_LIMIT, GovernedAgent, Request, governed_mcp_call
from seriatim.runtime.run import Observers, Run, open_run
from seriatim.topology import load_workspace
from telemetry import Telemetry, conventions, observe_audit_queue
from telemetry.settings import read_settings
from telemetry.setup import start
from tests.support.executors import reached
from tests.support.mcp_servers import SERVERS
from tests.support.metrics_server import MetricsServer
from tests.support.running_servers import until

# The building of the server is in it, where it is not built yet.
pytestmark = [pytest.mark.anyio, pytest.mark.timeout(1200)]

VISIBLE_SECONDS: Final = 30.0
"""How long a point may take from its arrival until queries show it."""

OFFICE: Final = """
from interceptors import Refused, Withheld


class Office:
    async def __call__(self, call, proceed):
        if call.skill == "closed":
            return Refused(Withheld("office", "Closed. Come back tomorrow."))
        if call.skill == "broken":
            raise RuntimeError("the gate breaks")
        outcome = await proceed(call)
        if call.skill == "spoilt":
            raise RuntimeError("the result breaks")
        return outcome
"""
"""A user's interceptor that refuses, breaks before a call goes on, and breaks after."""

TOOLS: Final = {
    "list": "list_conventions",
    "get": "get_convention",
    "search": "search_code",
    "publish": "structured",
    "fail": "fail",
    "raise": "raise",
    "slow": "slow",
    "late": "slow",
    "closed": "echo",
    "broken": "echo",
    "spoilt": "echo",
}
REQUIRES: Final = {"get": ["list"], "search": ["get"], "publish": ["search"]}


@pytest.fixture
def anyio_backend() -> str:
    """One event loop: what is exported does not depend on it, and servers take their time."""
    return "asyncio"


def _workspace(directory: Path) -> Path:
    """Write a workspace in which every outcome can be had."""
    command = ["python", str(SERVERS / "counting.py")]
    environment = {"CALLS_FILE": str(directory / "calls")}
    skills = {skill: ("docs", tool) for skill, tool in TOOLS.items()}
    skills |= {"erase": ("vault", "echo"), "reach": ("gone", "echo")}
    agent = {"skills": list(skills), "requires": REQUIRES}
    content = {
        "metadata": {"name": "outcomes"},
        "mcp_servers": [
            {"id": "docs", "command": command, "env": environment},
            {"id": "vault", "command": command, "env": environment, "permission": "strict"},
            {"id": "gone", "command": ["python", str(SERVERS / "exits.py")]},
        ],
        "skills": [
            {
                "id": skill,
                "server": server,
                "tool": tool,
                "description": f"The skill {skill}.",
                "constraints": {"timeout_seconds": 0.2 if skill == "late" else 60},
            }
            for skill, (server, tool) in skills.items()
        ],
        "agents": {
            "root": {
                "id": "builder",
                "role": "root",
                **agent,
                "children": [{"id": "sibling", "role": "worker", **agent}],
            }
        },
        "seriatim": {"interceptors": [{"use": "dashboards_office:Office"}]},
    }
    (directory / "dashboards_office.py").write_text(OFFICE, encoding="utf-8")
    file = directory / "topology.yaml"
    file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return file


class Workload:
    """Runs of one process, whose metrics are exported when it ends."""

    def __init__(self, workspace: Path, telemetry: Telemetry, audit: MemoryAuditSink) -> None:
        self._workspace: Final = workspace
        self._telemetry: Final = telemetry
        self._audit: Final = audit

    @asynccontextmanager
    async def run(self, max_calls: int = NO_LIMIT) -> AsyncIterator[Run]:
        workspace = load_workspace(self._workspace)
        [topology] = workspace.topologies.values()
        async with open_run(
            RunId(new_id()),
            workspace,
            topology,
            list(topology.agents),
            audit=self._audit,
            max_calls=max_calls,
            environ=os.environ,
            observers=Observers(self._telemetry),
        ) as run:
            yield run

    async def play(self) -> None:
        async with self.run() as run:
            await self._every_outcome(_agent(run, "builder", Via.MODEL))
            await self._give_up(_agent(run, "sibling", Via.GATEWAY))
        async with self.run(max_calls=1) as run:
            agent = _agent(run, "builder", Via.MODEL)
            await _call(agent, "list")
            await _call(agent, "list")

    async def _every_outcome(self, agent: GovernedAgent) -> None:
        # Refused, then recovered.
        for skill in ("get", "list", "get", "search"):
            await _call(agent, skill)
        # Refused for good: by permission, as not granted, by a user, by a gate that breaks.
        for skill in ("erase", "invented", "closed", "broken"):
            await _call(agent, skill)
        for skill in ("fail", "raise", "late", "spoilt", "reach"):
            await _call(agent, skill, {"seconds": 60} if skill == "late" else {})
        await _call(agent, "list", BrokenArguments("{", "they are not valid JSON"))
        await self._cancelled(agent)

    async def _cancelled(self, agent: GovernedAgent) -> None:
        before = reached(self._workspace.parent).count("slow")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_call, agent, "slow", {"seconds": 60})
            await until(lambda: reached(self._workspace.parent).count("slow") > before)
            tasks.cancel_scope.cancel()

    async def _give_up(self, agent: GovernedAgent) -> None:
        for skill in ("get", "search", "publish"):
            for _ in range(4):
                await _call(agent, skill)


def _agent(run: Run, agent: str, via: Via) -> GovernedAgent:
    return assemble(run, run.topology.agents[AgentId(agent)], via)


async def _call(
    agent: GovernedAgent, skill: str, arguments: JsonObject | BrokenArguments | None = None
) -> None:
    await governed_mcp_call(agent, [Request(CallId(new_id()), skill, arguments or {})])


@pytest.fixture
async def played(
    server: MetricsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[AuditRecord]:
    """What two processes recorded, whose metrics the server has."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    # A user's interceptor is looked for in the workspace, which the loader adds for good.
    monkeypatch.setattr(sys, "path", list(sys.path))
    audit = MemoryAuditSink()
    lost: list[str] = []
    workspace = _workspace(tmp_path)
    for process in ("first", "second"):
        # The SDK makes up one id for each real process.
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", f"service.instance.id={process}")
        settings = read_settings({"OTEL_TRACES_EXPORTER": "none"}, server.otlp)
        telemetry = start(settings, lost.append)
        observe_audit_queue(audit.waiting, telemetry.meter_provider)
        await Workload(workspace, telemetry, audit).play()
        await anyio.to_thread.run_sync(telemetry.close)
    assert not lost
    server.flush()
    return audit.records


async def _settled(server: MetricsServer, expected: int) -> None:
    """Wait until all decisions can be seen."""
    with anyio.fail_after(VISIBLE_SECONDS):
        while sum(value for _, value in server.query(grown(DECISIONS, "1h"))) < expected:  # noqa: ASYNC110  a server has no events
            await anyio.sleep(0.1)


def _variables(server: MetricsServer, boards: Mapping[str, Any]) -> dict[str, str]:
    """Return what Grafana fills in: the data sources' own, and all values that filters offer."""
    filled = {"__interval_ms": "900000", "__interval": "15m", "__range": "1h"}
    for variable in boards["calls"]["templating"]["list"]:
        if variable["type"] == "query":
            text = variable["query"]
            for name in sorted(filled, key=len, reverse=True):
                text = text.replace(f"${name}", filled[name])
            match = re.fullmatch(r"label_values\((.*), (\w+)\)", text)
            assert match, text
            selector, label = match.groups()
            values = {series[label] for series in server.series(selector)}
            assert values, variable["name"]
            # As Grafana does; in a string of PromQL a backslash is written twice.
            escaped = (re.sub(r"[\\^$*+?.()|{}\[\]]", r"\\\\\g<0>", value) for value in values)
            filled[variable["name"]] = "|".join(sorted(escaped))
    return filled


async def test_every_query_of_every_panel_and_alert_gives_series(
    server: MetricsServer,
    played: Sequence[AuditRecord],
    queries: Sequence[Any],
    boards: Mapping[str, Any],
) -> None:
    kinds = Counter((record.outcome, record.rule or record.error_kind) for record in played)
    assert set(kinds) == {
        ("completed", None),
        *(("refused", rule) for rule in ("requires", "permission", "grant", "limit", "gate")),
        ("refused", "dashboards_office:Office"),
        *(("failed", kind) for kind in ("tool_error", "protocol_error", "timeout", "raised")),
        *(("failed", kind) for kind in ("server_unavailable", "invalid_arguments", "cancelled")),
    }
    await _settled(server, len(played))

    metric_queries = [query for query in queries if query.language == "promql"]
    assert len(metric_queries) > 30
    every_value = _variables(server, boards)
    anything = every_value | dict.fromkeys(("agent", "skill", "server"), ".*")
    for query in metric_queries:
        for variables in (every_value, anything):
            text = query.filled(variables)
            found = server.query(text)
            assert found, f"{query.place}: nothing for {text}"
            assert all(math.isfinite(value) for _, value in found), f"{query.place}: {found}"
            # An expression may have a value for want of any series; its selectors must have them.
            for selector in _selectors(text):
                assert server.series(selector), f"{query.place}: no series for {selector}"

    await _counts_are_those_of_the_audit_log(server, played, queries, anything)


def _selectors(expression: str) -> list[str]:
    """Return the selectors of an expression: names of ours that are not labels to sum by."""
    return re.findall(r"seriatim_\w+(?:\{[^}]*\})?", re.sub(r"by \([^)]*\)", "", expression))


async def _counts_are_those_of_the_audit_log(
    server: MetricsServer,
    played: Sequence[AuditRecord],
    queries: Sequence[Any],
    variables: Mapping[str, str],
) -> None:
    [table] = [one for one in queries if one.place == "gate: Decisions by skill and rule"]
    recorded = Counter(
        (
            record.agent,
            record.skill if record.skill != "invented" else conventions.UNKNOWN,
            record.policy_decision,
            record.rule or "",
        )
        for record in played
    )
    names = ("gen_ai_agent_name", "gen_ai_tool_name", "policy_decision", "seriatim_rule_id")
    shown = {
        tuple(labels.get(name, "") for name in names): value
        for labels, value in server.query(table.filled(variables))
    }
    assert shown == recorded
