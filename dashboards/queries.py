"""PromQL over our metrics, under the names that Prometheus and VictoriaMetrics give them."""

from dataclasses import dataclass
from typing import Final

from telemetry import conventions


def label(attribute: str) -> str:
    """Return the label that an attribute becomes."""
    return attribute.replace(".", "_")


def counter(metric: str) -> str:
    """Return the series of a counter."""
    return f"{label(metric)}_total"


AGENT: Final = label(conventions.AGENT)
SKILL: Final = label(conventions.TOOL_NAME)
SERVER: Final = label(conventions.SERVER)
RULE: Final = label(conventions.RULE)
DECISION: Final = label(conventions.POLICY_DECISION)
OUTCOME: Final = label(conventions.OUTCOME)
ERROR_TYPE: Final = label(conventions.ERROR_TYPE)
PREREQUISITE: Final = label(conventions.PREREQUISITE)

DECISIONS: Final = counter(conventions.DECISIONS)
MISSED: Final = counter(conventions.MISSED)
RECOVERIES: Final = counter(conventions.RECOVERIES)
UNRECOVERED: Final = counter(conventions.UNRECOVERED)
LOST: Final = counter(conventions.TELEMETRY_DROPPED)
RECOVERY_CALLS: Final = label(conventions.RECOVERY_CALLS)
CALL_SECONDS: Final = f"{label(conventions.CALL_DURATION)}_seconds"
GATE_SECONDS: Final = f"{label(conventions.GATE_DURATION)}_seconds"
ACTIVE: Final = label(conventions.CALLS_ACTIVE)
AUDIT_QUEUE: Final = label(conventions.AUDIT_QUEUE)

DENIED: Final = f'{DECISION}="{conventions.DENY}"'

STEP: Final = "$__interval"
"""The time between two points of a graph."""
RANGE: Final = "$__range"
"""The time that the dashboard shows."""
SILENCE: Final = "1h"
"""How long a process may send nothing and still be known to be the same one."""


@dataclass(frozen=True, slots=True)
class Query:
    """An expression, and what its series are called in a legend or a column."""

    expression: str
    legend: str


def grown(series: str, window: str, *by: str, where: str = "") -> str:
    """Return by how much counters grew within a window, summed by labels.

    Not `increase`: it needs two points of a series, and a run that is over in seconds exports one.
    What a process had counted before the window is taken off, and nothing off what it began within
    the window. A process never counts backwards: each has an instance id of its own.
    """
    selector = selected(series, where)
    last = f"max_over_time({selector}[{window}])"
    before = f"max_over_time({selector}[{SILENCE}] offset {window})"
    return f"{summed(*by)} ({last} - ({before} or {last} * 0))"


def selected(series: str, where: str) -> str:
    """Return a selector of those series of a metric that matchers allow; `""` allows all."""
    return f"{series}{{{where}}}" if where else series


def summed(*by: str) -> str:
    """Return the beginning of a sum by labels, or of one over all series."""
    return f"sum by ({', '.join(by)})" if by else "sum"


def per_minute(series: str, *by: str, where: str = "") -> str:
    """Return the rate at which counters grow, for a graph."""
    return f"{grown(series, STEP, *by, where=where)} * 60000 / $__interval_ms"


def quantile(share: float, histogram: str, window: str, *by: str, where: str = "") -> str:
    """Return a quantile of what a histogram counted within a window."""
    buckets = grown(f"{histogram}_bucket", window, "le", *by, where=where)
    return f"histogram_quantile({share}, {buckets})"


def mean(histogram: str, window: str, *by: str, where: str = "") -> str:
    """Return the mean of what a histogram measured within a window."""
    total = grown(f"{histogram}_sum", window, *by, where=where)
    return f"{total} / {grown(f'{histogram}_count', window, *by, where=where)}"


def or_zero(expression: str) -> str:
    """Return an expression that has a value where nothing was counted."""
    return f"({expression} or vector(0))"
