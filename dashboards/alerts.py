"""Alert rules, in the form that Grafana reads when it is provisioned."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml
from grafana_foundation_sdk.builders import alerting, expr, prometheus
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.alerting import RelativeTimeRange

from dashboards.queries import (
    AGENT,
    CALL_SECONDS,
    DECISIONS,
    DENIED,
    OUTCOME,
    RECOVERIES,
    RULE,
    SKILL,
    UNRECOVERED,
    grown,
    or_zero,
)

DATA_SOURCE: Final = "prometheus"
"""The uid in `provisioning/datasources`: a rule cannot leave its data source to a variable."""

UNMET: Final = f'{RULE}="requires"'


@dataclass(frozen=True, slots=True)
class Alert:
    """A rule: it fires for each series of its expression that is above a bound.

    Attributes:
        window: the seconds that the expression looks back.

    """

    uid: str
    title: str
    expression: str
    above: float
    window: int
    severity: str
    summary: str
    description: str


def alerts() -> Sequence[Alert]:
    """Return the rules."""
    return (_thrashing(), _unrecovered(), _silent_gate())


def _thrashing() -> Alert:
    refused = grown(DECISIONS, "10m", AGENT, SKILL, where=DENIED)
    completed = grown(f"{CALL_SECONDS}_count", "10m", AGENT, SKILL, where=f'{OUTCOME}="completed"')
    return Alert(
        uid="seriatim-agent-thrashes",
        title="An agent thrashes",
        expression=f"{refused} unless ({completed} > 0)",
        above=5,
        window=600,
        severity="warning",
        summary=f"{{{{ $labels.{AGENT} }}}} keeps being refused {{{{ $labels.{SKILL} }}}}",
        description="It was refused {{ $values.A }} times in ten minutes and has not completed it "
        "once. Read the reason on the refused spans: the agent does not, or it cannot do what it "
        "is told.",
    )


def _unrecovered() -> Alert:
    given_up = grown(UNRECOVERED, "1h", AGENT)
    recovered = f"({grown(RECOVERIES, '1h', AGENT)} or {given_up} * 0)"
    endings = f"({given_up} + {recovered})"
    return Alert(
        uid="seriatim-refusals-do-not-recover",
        title="Refusals do not recover",
        # A share of four endings says nothing.
        expression=f"{given_up} / {endings} and {endings} >= 5",
        above=0.5,
        window=3600,
        severity="warning",
        summary=f"{{{{ $labels.{AGENT} }}}} gives up more refused skills than it recovers",
        description="Of what it was refused in the last hour and could have earned, it never "
        "completed {{ humanizePercentage $values.A.Value }} by the end of the run.",
    )


def _silent_gate() -> Alert:
    judged = grown(DECISIONS, "1d")
    refused = or_zero(grown(DECISIONS, "1d", where=UNMET))
    return Alert(
        uid="seriatim-gate-never-fires",
        title="The gate never fires",
        # The number of decisions while no refusal is among them, else zero.
        expression=f"{judged} * ({refused} == bool 0)",
        above=100,
        window=86400,
        severity="info",
        summary="No call was refused for want of a prerequisite in a day",
        description="{{ $values.A }} decisions were made. Either every agent knows the order by "
        "heart, or the topology that runs has lost its `requires:`, or agents reach their tools by "
        "another way. Silence this rule where no topology has rules.",
    )


def rules_file() -> str:
    """Return the provisioning file."""
    group = {
        "orgId": 1,
        "name": "seriatim",
        "folder": "Seriatim",
        "interval": "1m",
        "rules": [_provisioned(alert) for alert in alerts()],
    }
    head = "# Made by `python -m dashboards.generate` from `dashboards/alerts.py`.\n"
    return head + yaml.safe_dump(
        {"apiVersion": 1, "groups": [group]}, sort_keys=False, width=sys.maxsize
    )


def _provisioned(alert: Alert) -> dict[str, Any]:
    """Return a rule in the words of a provisioning file: those of the API, without the group's."""
    query = (
        alerting.Query("A")
        .datasource_uid(DATA_SOURCE)
        .relative_time_range(RelativeTimeRange(from_val=alert.window, to=0))
        .model(prometheus.Dataquery().ref_id("A").expr(alert.expression).instant())
    )
    condition = expr.ExprTypeThresholdConditions().evaluator(
        expr.ExprTypeThresholdConditionsEvaluator().type("gt").params([alert.above])
    )
    threshold = (
        alerting.Query("B")
        .datasource_uid("__expr__")
        .model(expr.TypeThreshold().ref_id("B").expression("A").conditions([condition]))
    )
    rule = (
        alerting.Rule(alert.title)
        .uid(alert.uid)
        .condition("B")
        .with_query(query)
        .with_query(threshold)
        .for_val("0s")
        .no_data_state("OK")
        .exec_err_state("Error")
        .labels({"severity": alert.severity})
        .annotations({"summary": alert.summary, "description": alert.description})
    )
    plain: dict[str, Any] = json.loads(JSONEncoder().encode(rule.build()))
    return {
        key: value for key, value in plain.items() if key not in ("folderUID", "orgID", "ruleGroup")
    }
