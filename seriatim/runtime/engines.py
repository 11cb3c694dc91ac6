"""What decides and what remembers in a run: ours, or what an application brings in their place."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias, final

from interceptors import Ledger, MemoryLedger, Policy, TierPolicy, ToolRef
from seriatim.runtime.servers import RunningServers
from seriatim.topology.models import Agent, Workspace
from seriatim.topology.permits import permit_of

PolicyFor: TypeAlias = Callable[[Workspace, RunningServers, Agent], Policy]
"""Makes the policy that decides about the calls of one agent; called once for each chain."""


def tier_policy(workspace: Workspace, servers: RunningServers, agent: Agent) -> Policy:
    """Return the policy that goes by the tiers and scopes of the topology."""
    permits = {
        skill.id: permit_of(
            skill,
            workspace.servers[skill.tool.server],
            annotated_read_only=_annotated_read_only(servers, skill.tool),
        )
        for skill in agent.skills
    }
    return TierPolicy(permits, agent.scopes)


@final
@dataclass(frozen=True, slots=True)
class Engines:
    """What the gate of a run asks.

    Attributes:
        policy: says whether an agent may use a tool at all.
        ledger: knows what has succeeded; the run forgets itself there when it ends.
    """

    policy: PolicyFor = tier_policy
    ledger: Ledger = field(default_factory=MemoryLedger)


def _annotated_read_only(servers: RunningServers, tool: ToolRef) -> bool:
    listed = servers.tools(tool.server).get(tool.name)
    return bool(listed and listed.annotations and listed.annotations.read_only_hint)
