"""The one place that composes a chain."""

from interceptors import (
    AuditInterceptor,
    Execution,
    Handler,
    Interceptor,
    LimitReached,
    NotGranted,
    Outcome,
    PermissionInterceptor,
    Permit,
    PrerequisiteInterceptor,
    Refusal,
    Refused,
    Rules,
    Scope,
    TierPolicy,
    ToolCall,
    ToolRef,
    Via,
    compose,
)
from seriatim.runtime.dispatch import GovernedAgent
from seriatim.runtime.plugins import make_interceptor
from seriatim.runtime.run import Run
from seriatim.topology.models import Agent, Effect, Skill


def assemble(run: Run, agent: Agent, via: Via) -> GovernedAgent:
    """Compose the chains of one agent in one run.

    The order, outermost first: what observes (tracing), audit, the user's outer interceptors,
    prerequisites, permission, the user's inner interceptors, execution. An agent without rules
    gets a chain without the prerequisite interceptor.

    Raises:
        InterceptorError: when a user's interceptor cannot be had.

    """
    fail_open = run.workspace.settings.fail == "open"
    rules = Rules(agent.requires)
    skills = {skill.id: skill for skill in agent.skills}
    recorded = [*run.observers.interceptors, _audit(run, agent, fail_open=fail_open)]
    gate: list[Interceptor] = []
    if rules:
        gate.append(PrerequisiteInterceptor(rules, fail_open=fail_open))
    permits = {skill.id: _permit(run, skill) for skill in agent.skills}
    gate.append(PermissionInterceptor(TierPolicy(permits, agent.scopes), fail_open=fail_open))
    execution = Execution(run.servers, {skill.id: skill.timeout for skill in agent.skills})
    return GovernedAgent(
        scope=Scope(run.id, agent.id),
        via=via,
        skills=skills,
        rules=rules,
        ledger=run.ledger,
        allowance=run.allowance,
        chain=compose([*recorded, *_users(run, "outer"), *gate, *_users(run, "inner")], execution),
        not_granted=compose(recorded, _refusing(NotGranted(tuple(skills)))),
        over_limit=compose(recorded, _refusing(LimitReached(run.allowance.limit))),
    )


def _audit(run: Run, agent: Agent, *, fail_open: bool) -> AuditInterceptor:
    return AuditInterceptor(
        run.audit,
        run.topology.name,
        run.redactor,
        hidden={skill.id: skill.redact for skill in agent.skills if skill.redact},
        current_trace=run.observers.current_trace,
        fail_open=fail_open,
    )


def _users(run: Run, position: str) -> list[Interceptor]:
    settings = run.workspace.settings.interceptors
    return [
        make_interceptor(setting, run.workspace.directory)
        for setting in settings
        if setting.position == position
    ]


def _permit(run: Run, skill: Skill) -> Permit:
    tool = skill.tool
    server = run.workspace.servers[tool.server]
    own = tool.name in server.tool_tiers
    return Permit(
        tier=server.tool_tiers.get(tool.name, server.tier),
        subject=f"tool {tool.name} of server {server.id}" if own else f"server {server.id}",
        required_scopes=skill.required_scopes,
        reads_only=_reads_only(run, tool, server.effects.get(tool.name, Effect.UNDECLARED)),
    )


def _reads_only(run: Run, tool: ToolRef, declared: Effect) -> bool:
    """Return what the workspace declares of a tool, else what its server says of it."""
    if declared is not Effect.UNDECLARED:
        return declared is Effect.READ
    listed = run.servers.tools(tool.server).get(tool.name)
    return bool(listed and listed.annotations and listed.annotations.read_only_hint)


def _refusing(refusal: Refusal) -> Handler:
    """Return the terminal of a chain in which every call is refused for one reason."""

    async def refuse(_call: ToolCall, /) -> Outcome:
        return Refused(refusal)

    return refuse
