"""An application's own policy and ledger, in the place of ours, on both executors."""

from pathlib import Path

import pytest

from interceptors import (
    Allowed,
    Attempt,
    DecisionId,
    Denied,
    MemoryAuditSink,
    MemoryLedger,
    Policy,
    Scope,
    SkillId,
    ToolCall,
    Verdict,
)
from seriatim.runtime import Engines
from seriatim.runtime.servers.running import RunningServers
from seriatim.topology.models import Agent, Workspace
from tests.support.executors import EXECUTORS, Reply, ask, gate_workspace, opened, reached

pytestmark = pytest.mark.anyio


class OfficeHours:
    """A policy that knows of no tiers."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    async def decide(self, call: ToolCall, /) -> Verdict:
        if call.skill == "get":
            return Denied(f"{self.agent.id} is off duty")
        return Allowed()


def office_hours(_workspace: Workspace, _servers: RunningServers, agent: Agent) -> Policy:
    return OfficeHours(agent)


class Remembering(MemoryLedger):
    """A ledger that notes what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.completed: list[tuple[str, str]] = []

    async def finish(
        self, scope: Scope, skill: SkillId, decision: DecisionId, attempt: Attempt
    ) -> None:
        if attempt is Attempt.COMPLETED:
            self.completed.append((scope.agent, skill))
        await super().finish(scope, skill, decision, attempt)


@pytest.mark.parametrize("executor", EXECUTORS)
async def test_an_applications_policy_decides_in_the_place_of_ours(
    executor: str, tmp_path: Path
) -> None:
    file = gate_workspace(tmp_path, {})
    engines = Engines(policy=office_hours)
    async with (
        opened(file, MemoryAuditSink(), engines=engines) as run,
        EXECUTORS[executor](run, "builder") as agent,
    ):
        told = "get is not permitted for this agent (builder is off duty). Do not retry; report it."
        assert await ask(agent, "get") == Reply(told, is_error=True)
        assert not (await ask(agent, "list")).is_error
    assert reached(tmp_path) == ["list_conventions"]


@pytest.mark.parametrize("executor", EXECUTORS)
async def test_an_applications_ledger_remembers_in_the_place_of_ours(
    executor: str, tmp_path: Path
) -> None:
    file = gate_workspace(tmp_path, {"get": ["list"]})
    ledger = Remembering()
    async with (
        opened(file, MemoryAuditSink(), engines=Engines(ledger=ledger)) as run,
        EXECUTORS[executor](run, "builder") as agent,
    ):
        assert (await ask(agent, "get")).is_error
        await ask(agent, "list")
        assert not (await ask(agent, "get")).is_error
        assert ledger.completed == [("builder", "list")]
