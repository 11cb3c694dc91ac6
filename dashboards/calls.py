"""The dashboard *Calls*: how many there are, how many fail, and how long they take."""

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
    ACTIVE,
    CALL_SECONDS,
    ERROR_TYPE,
    OUTCOME,
    RANGE,
    SERVER,
    SKILL,
    STEP,
    Query,
    grown,
    or_zero,
    per_minute,
    quantile,
    selected,
    summed,
)
from dashboards.traces import in_jaeger, in_tempo
from dashboards.variables import (
    BY_SERVER,
    agents,
    jaeger_page,
    servers,
    service,
    skills,
    source,
)
from telemetry import conventions

CALLS = f"{CALL_SECONDS}_count"
"""Calls that have an outcome, refused ones included."""

EXECUTED = f'{BY_SERVER}, {OUTCOME}!="refused"'
FAILED = f'{BY_SERVER}, {OUTCOME}="failed"'


def calls() -> Dashboard:
    """Return the dashboard."""
    dashboard = board(
        "Seriatim: calls",
        "seriatim-calls",
        "The calls that agents make to tools: how many, how many fail, and how long they take.",
        [
            source("prometheus"),
            source("jaeger"),
            source("tempo"),
            agents(),
            skills(),
            servers(),
            service(),
            jaeger_page(),
        ],
    )
    _figures(dashboard)
    _rates(dashboard)
    _latencies(dashboard)
    _details(dashboard)
    _traces(dashboard)
    return dashboard


def _figures(dashboard: Dashboard) -> None:
    failed = or_zero(grown(CALLS, RANGE, where=FAILED))
    dashboard.with_panel(
        figure(
            "Calls",
            "Attempts of agents to use a skill, refused ones included.",
            COUNT,
            grown(CALLS, RANGE, where=BY_SERVER),
        )
    )
    dashboard.with_panel(
        figure(
            "Error rate",
            "Of the calls that the gate let pass, the share that failed. Refusals are no errors.",
            SHARE,
            f"{failed} / {grown(CALLS, RANGE, where=EXECUTED)}",
            bad_above=(0.05, 0.2),
        )
    )
    for share, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99")):
        dashboard.with_panel(
            figure(
                f"Latency, {name}",
                f"{share:.0%} of the calls that the gate let pass took no longer, from the call to "
                "its outcome.",
                SECONDS,
                quantile(share, CALL_SECONDS, RANGE, where=EXECUTED),
            )
        )
    dashboard.with_panel(
        figure(
            "In flight",
            "Calls that have no outcome yet, as of the last export.",
            COUNT,
            f"{summed()} ({selected(ACTIVE, BY_SERVER)})",
        )
    )


def _rates(dashboard: Dashboard) -> None:
    dashboard.with_panel(
        stacked(
            "Calls by outcome",
            "Calls a minute that completed, failed, and were refused.",
            PER_MINUTE,
            Query(per_minute(CALLS, OUTCOME, where=BY_SERVER), f"{{{{{OUTCOME}}}}}"),
        )
    )
    dashboard.with_panel(
        stacked(
            "Calls by skill",
            f"Calls a minute. `{conventions.UNKNOWN}` stands for names that no topology holds.",
            PER_MINUTE,
            Query(per_minute(CALLS, SKILL, where=BY_SERVER), f"{{{{{SKILL}}}}}"),
        )
    )
    dashboard.with_panel(
        stacked(
            "Errors by kind",
            "Failed calls a minute: the tool said so (`tool_error`), it took too long (`timeout`), "
            "its server was not there (`server_unavailable`), the caller gave up (`cancelled`) ...",
            PER_MINUTE,
            Query(per_minute(CALLS, ERROR_TYPE, where=FAILED), f"{{{{{ERROR_TYPE}}}}}"),
        )
    )
    dashboard.with_panel(
        stacked(
            "Errors by server",
            "Failed calls a minute, by the MCP server that they were meant for.",
            PER_MINUTE,
            Query(per_minute(CALLS, SERVER, where=FAILED), f"{{{{{SERVER}}}}}"),
        )
    )


def _latencies(dashboard: Dashboard) -> None:
    for by, word in ((SKILL, "skill"), (SERVER, "server")):
        dashboard.with_panel(
            graph(
                f"Latency by {word}",
                f"From the call to its outcome, for each {word}: half of the calls take no longer "
                "than p50, 95 of 100 no longer than p95. Refused calls are left out.",
                SECONDS,
                *(
                    Query(
                        quantile(share, CALL_SECONDS, STEP, by, where=EXECUTED),
                        f"{{{{{by}}}}} {name}",
                    )
                    for share, name in ((0.5, "p50"), (0.95, "p95"))
                ),
            )
        )


def _details(dashboard: Dashboard) -> None:
    dashboard.with_panel(
        listing(
            "Skills and servers",
            "Calls that the gate let pass, how many of them failed, and how long 95 of 100 took.",
            {"calls": COUNT, "failed": COUNT, "p95": SECONDS},
            {SKILL: "skill", SERVER: "server"},
            Query(grown(CALLS, RANGE, SKILL, SERVER, where=EXECUTED), "calls"),
            Query(grown(CALLS, RANGE, SKILL, SERVER, where=FAILED), "failed"),
            Query(quantile(0.95, CALL_SECONDS, RANGE, SKILL, SERVER, where=EXECUTED), "p95"),
        )
    )
    dashboard.with_panel(
        graph(
            "In flight by skill",
            "Calls that have no outcome yet, at each export. One that stays up is a tool that "
            "hangs, or a process that was killed.",
            COUNT,
            Query(f"{summed(SKILL)} ({selected(ACTIVE, BY_SERVER)})", f"{{{{{SKILL}}}}}"),
        ).span(6)
    )
    dashboard.with_panel(
        ranking(
            "Errors by skill",
            "Failed calls of each skill in the time shown, by their kind.",
            COUNT,
            Query(
                f"topk(10, {grown(CALLS, RANGE, SKILL, ERROR_TYPE, where=FAILED)})",
                f"{{{{{SKILL}}}}}: {{{{{ERROR_TYPE}}}}}",
            ),
        ).span(6)
    )


def _traces(dashboard: Dashboard) -> None:
    dashboard.with_panel(
        in_jaeger(
            "Failed calls in Jaeger",
            "The latest traces in which a call failed; a trace id opens the trace. Refusals are "
            "not among them: their spans have no error status.",
            "error",
            "true",
        )
    )
    shown = ", ".join(
        f"span.{name}"
        for name in (conventions.AGENT, conventions.TOOL_NAME, conventions.ERROR_TYPE)
    )
    dashboard.with_row(
        Row("With Tempo in Jaeger's place").with_panel(
            in_tempo(
                "Failed calls in Tempo",
                "The latest spans of failed calls, with agent, skill and kind of failure; a span "
                "opens its trace.",
                f'{{ status = error && span.{conventions.OPERATION} = "{conventions.EXECUTE_TOOL}"'
                f" }} | select({shown})",
            )
        )
    )
