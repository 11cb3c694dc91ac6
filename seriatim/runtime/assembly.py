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
    PrerequisiteInterceptor,
    Refusal,
    Refused,
    Rules,
    Scope,
    SkillId,
    ToolCall,
    Via,
    compose,
    no_trace,
)
from seriatim.runtime.dispatch import GovernedAgent
from seriatim.runtime.plugins import make_interceptor
from seriatim.runtime.run import Run
from seriatim.topology.models import Agent
from telemetry import (
    ExecutionTimer,
    ExecutionTimes,
    MetricsInterceptor,
    RecoveryInterceptor,
    TracingInterceptor,
    current_trace,
)


def assemble(run: Run, agent: Agent, via: Via) -> GovernedAgent:
    """Compose the chains of one agent in one run.

    The order, outermost first: telemetry, audit, the user's outer interceptors, prerequisites,
    permission, the user's inner interceptors, execution. What is off, or has no rules to judge by,
    is not composed.

    Raises:
        InterceptorError: when a user's interceptor cannot be had.
    """
    fail_open = run.workspace.settings.fail == "open"
    rules = Rules(agent.requires)
    times = ExecutionTimes()
    recorded = [*_telemetry(run, agent, times), *run.observers.watches, _audit(run, agent)]
    chain = [*recorded, *_users(run, "outer")]
    if rules:
        chain.append(PrerequisiteInterceptor(rules, fail_open=fail_open))
    policy = run.engines.policy(run.workspace, run.servers, agent)
    chain.append(PermissionInterceptor(policy, fail_open=fail_open))
    chain += _users(run, "inner")
    if run.observers.telemetry.metrics:
        chain.append(ExecutionTimer(times))
    timeouts = {skill.id: skill.timeout for skill in agent.skills}
    execution = Execution(run.servers, timeouts, run.redactor)
    skills = {skill.id: skill for skill in agent.skills}
    return GovernedAgent(
        scope=Scope(run.id, agent.id),
        via=via,
        skills=skills,
        rules=rules,
        ledger=run.engines.ledger,
        allowance=run.allowance,
        chain=compose(chain, execution),
        not_granted=compose(recorded, _refusing(NotGranted(tuple(skills)))),
        over_limit=compose(recorded, _refusing(LimitReached(run.allowance.limit))),
    )


def _telemetry(run: Run, agent: Agent, times: ExecutionTimes) -> list[Interceptor]:
    telemetry = run.observers.telemetry
    observing: list[Interceptor] = []
    if telemetry.traces:
        observing.append(
            TracingInterceptor(
                run.redactor,
                hidden=_hidden(agent),
                capture=telemetry.capture,
                event_form=telemetry.event_form,
                tracer_provider=telemetry.tracer_provider,
            )
        )
    if telemetry.enabled:
        observing.append(RecoveryInterceptor(run.recoveries))
    if telemetry.metrics:
        observing.append(MetricsInterceptor(run.names, times, telemetry.meter_provider))
    return observing


def _audit(run: Run, agent: Agent) -> AuditInterceptor:
    return AuditInterceptor(
        run.audit,
        run.topology.name,
        run.redactor,
        hidden=_hidden(agent),
        current_trace=current_trace if run.observers.telemetry.traces else no_trace,
        fail_open=run.workspace.settings.fail == "open",
    )


def _hidden(agent: Agent) -> dict[SkillId, frozenset[str]]:
    return {skill.id: skill.redact for skill in agent.skills if skill.redact}


def _users(run: Run, position: str) -> list[Interceptor]:
    settings = run.workspace.settings.interceptors
    return [
        make_interceptor(setting, run.workspace.directory, run.redactor)
        for setting in settings
        if setting.position == position
    ]


def _refusing(refusal: Refusal) -> Handler:
    """Return the terminal of a chain in which every call is refused for one reason."""

    async def refuse(_call: ToolCall, /) -> Outcome:
        return Refused(refusal)

    return refuse
