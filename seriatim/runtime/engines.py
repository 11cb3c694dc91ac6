"""What decides and what remembers in a run: ours, or what an application brings in their place."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias, final

from interceptors import (
    Denied,
    Ledger,
    MemoryLedger,
    Permit,
    Policy,
    SkillId,
    TierPolicy,
    judge,
)
from seriatim.runtime.servers.annotated import AnnotatedPolicy
from seriatim.runtime.servers.running import RunningServers
from seriatim.topology.models import Agent, Workspace
from seriatim.topology.permits import permit_of

PolicyFor: TypeAlias = Callable[[Workspace, RunningServers, Agent], Policy]
"""Makes the policy that decides about the calls of one agent; called once for each chain."""


def tier_policy(workspace: Workspace, servers: RunningServers, agent: Agent) -> Policy:
    """Return the policy that goes by the tiers and scopes of the topology.

    Servers are asked where their word decides, and nowhere else.
    """
    permits: dict[SkillId, Permit] = {}
    asked: dict[SkillId, Denied] = {}
    for skill in agent.skills:
        server = workspace.servers[skill.tool.server]
        permits[skill.id] = permit_of(skill, server, annotated_read_only=True)
        writing = permit_of(skill, server, annotated_read_only=False)
        verdict = judge(writing, skill.tool, agent.scopes)
        if writing != permits[skill.id] and isinstance(verdict, Denied):
            asked[skill.id] = verdict
    by_tier = TierPolicy(permits, agent.scopes)
    return AnnotatedPolicy(asked, servers, by_tier) if asked else by_tier


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
