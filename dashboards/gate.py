"""The dashboard *Gate*: whether the gate refuses, and whether agents recover."""

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row

from dashboards.board import board
from dashboards.panels import (
    COUNT,
    PER_MINUTE,
    SECONDS,
    SHARE,
    figure,
    graph,
    listing,
    ranking,
    stacked,
)
from dashboards.queries import (
    AGENT,
    AUDIT_QUEUE,
    DECISION,
    DECISIONS,
    DENIED,
    GATE_SECONDS,
    LOST,
    MISSED,
    PREREQUISITE,
    RANGE,
    RECOVERIES,
    RECOVERY_CALLS,
    RULE,
    SKILL,
    STEP,
    UNRECOVERED,
    Query,
    grown,
    mean,
    or_zero,
    per_minute,
    quantile,
)
from dashboards.traces import in_jaeger, in_tempo
from dashboards.variables import (
    BY_AGENT,
    BY_SKILL,
    agents,
    jaeger_page,
    service,
    skills,
    source,
)
from telemetry import conventions

REFUSED = f"{BY_SKILL}, {DENIED}"


def gate() -> Dashboard:
    """Return the dashboard."""
    dashboard = board(
        "Seriatim: gate",
        "seriatim-gate",
        "What the gate decides, what it refuses for, and whether agents recover from it.",
        [
            source("prometheus"),
            source("jaeger"),
            source("tempo"),
            agents(),
            skills(),
            service(),
            jaeger_page(),
        ],
    )
    _figures(dashboard)
    _decisions(dashboard)
    _recoveries(dashboard)
    _cost(dashboard)
    _traces(dashboard)
    return dashboard


def _figures(dashboard: Dashboard) -> None:
    recovered = or_zero(grown(RECOVERIES, RANGE, where=BY_SKILL))
    unrecovered = or_zero(grown(UNRECOVERED, RANGE, where=BY_SKILL))
    refused = or_zero(grown(DECISIONS, RANGE, where=REFUSED))
    dashboard.with_panel(
        figure(
            "Decisions",
            "Calls that the gate has judged, whether it let them pass or refused them.",
            COUNT,
            grown(DECISIONS, RANGE, where=BY_SKILL),
        )
    )
    dashboard.with_panel(
        figure(
            "Refusal rate",
            "The share of calls that were refused. Not an error rate: a refusal is the gate at "
            "work. Zero for long means that the gate is not reached, or not needed.",
            SHARE,
            f"{refused} / {grown(DECISIONS, RANGE, where=BY_SKILL)}",
        )
    )
    dashboard.with_panel(
        figure(
            "Recovery rate",
            "Of the skills that an agent was refused and could have earned, the share that it "
            "completed later in the same run. Runs that go on count only what is recovered.",
            SHARE,
            f"{recovered} / ({recovered} + {unrecovered})",
        )
    )
    dashboard.with_panel(
        figure(
            "Calls per recovery",
            "Calls that an agent made, on average, from the first refusal of a skill to its "
            "completion. Two is the least: the prerequisite, then the retry.",
            COUNT,
            mean(RECOVERY_CALLS, RANGE, where=BY_SKILL),
        ).decimals(1)
    )
    dashboard.with_panel(
        figure(
            "Unrecovered",
            "Skills that were refused and never completed by the end of their run.",
            COUNT,
            unrecovered,
            bad_above=(1, 10),
        )
    )
    dashboard.with_panel(
        figure(
            "Time in the gate, p95",
            "What the gate adds to a call, the commit of its audit row included and the tool's "
            "own time left out; 95 of 100 calls take less. By agent only.",
            SECONDS,
            quantile(0.95, GATE_SECONDS, RANGE, where=BY_AGENT),
        )
    )


def _decisions(dashboard: Dashboard) -> None:
    dashboard.with_panel(
        stacked(
            "Decisions",
            "Calls a minute that were let pass and that were refused.",
            PER_MINUTE,
            Query(per_minute(DECISIONS, DECISION, where=BY_SKILL), f"{{{{{DECISION}}}}}"),
        )
    )
    dashboard.with_panel(
        stacked(
            "Refusals by rule",
            "Refused calls a minute. `requires` teaches an order; `permission`, `grant` and "
            "`limit` say no for good; `gate` means that the gate could not decide.",
            PER_MINUTE,
            Query(per_minute(DECISIONS, RULE, where=REFUSED), f"{{{{{RULE}}}}}"),
        )
    )
    dashboard.with_panel(
        listing(
            "Decisions by skill and rule",
            "How often each skill was let pass (no rule) and refused (by which rule). "
            f"`{conventions.UNKNOWN}` stands for names that no topology holds.",
            {"decisions": COUNT},
            {AGENT: "agent", SKILL: "skill", DECISION: "decision", RULE: "rule"},
            Query(
                grown(DECISIONS, RANGE, AGENT, SKILL, DECISION, RULE, where=BY_SKILL), "decisions"
            ),
        )
    )
    dashboard.with_panel(
        ranking(
            "Prerequisites missed most",
            "For want of which prerequisite calls were refused, and of which skill. The longest "
            "bar is what the agent's instructions fail to say.",
            COUNT,
            Query(
                f"topk(10, {grown(MISSED, RANGE, PREREQUISITE, SKILL, where=BY_SKILL)})",
                f"{{{{{PREREQUISITE}}}}} before {{{{{SKILL}}}}}",
            ),
        )
    )


def _recoveries(dashboard: Dashboard) -> None:
    dashboard.with_panel(
        stacked(
            "Recovered and unrecovered",
            "Skills a minute that were completed after a refusal, and that were given up when "
            "their run ended.",
            PER_MINUTE,
            Query(per_minute(RECOVERIES, where=BY_SKILL), "recovered"),
            Query(per_minute(UNRECOVERED, where=BY_SKILL), "unrecovered"),
        )
    )
    dashboard.with_panel(
        graph(
            "Calls per recovery",
            "Calls from the first refusal of a skill to its completion: half of the recoveries "
            "take no more than p50, nine of ten no more than p90.",
            COUNT,
            # Rounded up: between two whole numbers there is no number of calls.
            Query(f"ceil({quantile(0.5, RECOVERY_CALLS, STEP, where=BY_SKILL)})", "p50"),
            Query(f"ceil({quantile(0.9, RECOVERY_CALLS, STEP, where=BY_SKILL)})", "p90"),
        )
    )
    dashboard.with_panel(
        ranking(
            "Calls per recovery, by skill",
            "The mean for each skill. A long bar is a rule whose refusal teaches badly, or a long "
            "chain of prerequisites.",
            COUNT,
            Query(mean(RECOVERY_CALLS, RANGE, SKILL, where=BY_SKILL), f"{{{{{SKILL}}}}}"),
        ).decimals(1)
    )
    dashboard.with_panel(
        listing(
            "Refused and never completed",
            "Skills that an agent was refused, by the rule that refused it last, and had not "
            "completed when its run ended.",
            {"times": COUNT},
            {AGENT: "agent", SKILL: "skill", RULE: "rule"},
            Query(grown(UNRECOVERED, RANGE, AGENT, SKILL, RULE, where=BY_SKILL), "times"),
        )
    )


def _cost(dashboard: Dashboard) -> None:
    shares = ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))
    dashboard.with_panel(
        graph(
            "Time in the gate",
            "What the gate adds to a call, the commit of its audit row included and the tool's own "
            "time left out.",
            SECONDS,
            *(
                Query(quantile(share, GATE_SECONDS, STEP, where=BY_AGENT), legend)
                for share, legend in shares
            ),
        )
    )
    dashboard.with_panel(
        graph(
            "Audit rows that wait",
            "Rows that are not committed yet. No outcome is returned before its row is, so a queue "
            "that stays is time that agents wait.",
            COUNT,
            Query(f"sum({AUDIT_QUEUE})", "rows"),
        ).span(6)
    )
    dashboard.with_panel(
        graph(
            "Telemetry that was lost",
            "Spans a minute that could not be delivered. What is lost is missing in the traces, "
            "never in the audit log.",
            PER_MINUTE,
            Query(per_minute(LOST), "spans"),
        ).span(6)
    )


def _traces(dashboard: Dashboard) -> None:
    dashboard.with_panel(
        in_jaeger(
            "Refused calls in Jaeger",
            "The latest traces in which a call was refused; a trace id opens the trace. The span's "
            f"event `{conventions.REFUSAL_EVENT}` says why, and what was missing.",
            conventions.POLICY_DECISION,
            conventions.DENY,
        )
    )
    shown = (
        *(f"span.{name}" for name in (conventions.AGENT, conventions.TOOL_NAME, conventions.RULE)),
        f"event.{conventions.REASON}",
    )
    dashboard.with_row(
        Row("With Tempo in Jaeger's place").with_panel(
            in_tempo(
                "Refused calls in Tempo",
                "The latest spans of refused calls, with agent, skill, rule and reason; a span "
                "opens its trace.",
                f'{{ span.{conventions.POLICY_DECISION} = "{conventions.DENY}" }} '
                f"| select({', '.join(shown)})",
            )
        )
    )
