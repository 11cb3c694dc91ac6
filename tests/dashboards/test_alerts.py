"""What the alert rules fire for, and how growth is counted, against a real metrics server."""

from collections.abc import Sequence
from time import time
from typing import Any, Final

import pytest

from dashboards.queries import grown
from tests.support.metrics_server import MetricsServer

# The building of the server is in it, where it is not built yet.
pytestmark = pytest.mark.timeout(1200)


def test_growth_counts_what_began_within_the_window_and_takes_off_what_was_before(
    server: MetricsServer,
) -> None:
    # Minutes ago, and value.
    points = {
        "long": [(40, 5), (20, 5), (16, 5), (10, 8), (1, 8)],
        # Exported once, as a short run does: `increase` would see nothing.
        "once": [(5, 4)],
        "over": [(40, 9)],
    }
    for process, values in points.items():
        for minutes, value in values:
            server.write(_point("growth_total", value, minutes, process=process))
    shown = {
        labels["process"]: value
        for labels, value in server.query(grown("growth_total", "15m", "process"))
    }
    assert shown == {"long": 3, "once": 4}
    assert server.query(grown("growth_total", "15m")) == [({}, 7)]


def _point(series: str, value: float, minutes_ago: float, **labels: str) -> str:
    """Return a point in Prometheus's text format."""
    matched = ", ".join(f'{name}="{text}"' for name, text in labels.items())
    return f"{series}{{{matched}}} {value} {int((time() - minutes_ago * 60) * 1000)}"


class Past:
    """Writes what agents are to have done a minute ago."""

    def __init__(self, server: MetricsServer, rules: Sequence[Any]) -> None:
        self._server: Final = server
        self._rules: Final = {rule["title"]: rule["data"] for rule in rules}

    def counted(self, series: str, value: int, **labels: str) -> None:
        self._server.write(_point(series, value, 1, **labels))

    def refused(self, times: int, agent: str, rule: str = "requires") -> None:
        labels = {"policy_decision": "deny", "seriatim_rule_id": rule}
        skill = {"gen_ai_agent_name": agent, "gen_ai_tool_name": "get"}
        self.counted("seriatim_decisions_total", times, **skill, **labels)

    def allowed(self, times: int, agent: str) -> None:
        skill = {"gen_ai_agent_name": agent, "gen_ai_tool_name": "get"}
        self.counted("seriatim_decisions_total", times, **skill, policy_decision="allow")
        outcome = {"seriatim_outcome": "completed"}
        self.counted("seriatim_call_duration_seconds_count", times, **skill, **outcome)

    def ended(self, agent: str, *, recovered: int, unrecovered: int) -> None:
        for series, times in (("recoveries", recovered), ("unrecovered", unrecovered)):
            if times:
                self.counted(f"seriatim_{series}_total", times, gen_ai_agent_name=agent)

    def fires_for(self, title: str) -> list[str]:
        """Return the agents for which a rule fires; `""` is no agent in particular."""
        query, threshold = self._rules[title]
        [condition] = threshold["model"]["conditions"]
        [bound] = condition["evaluator"]["params"]
        return [
            labels.get("gen_ai_agent_name", "")
            for labels, value in self._server.query(query["model"]["expr"])
            if value > bound
        ]


@pytest.fixture
def past(server: MetricsServer, alert_rules: Sequence[Any]) -> Past:
    return Past(server, alert_rules)


def test_an_agent_thrashes_when_it_is_refused_over_and_over_and_never_completes(
    past: Past,
) -> None:
    past.refused(6, "thrashes")
    past.refused(5, "struggles")
    past.refused(20, "learns")
    past.allowed(1, "learns")
    assert past.fires_for("An agent thrashes") == ["thrashes"]


def test_refusals_do_not_recover_when_most_of_several_are_given_up(past: Past) -> None:
    past.ended("gives up", recovered=2, unrecovered=4)
    past.ended("never recovers", recovered=0, unrecovered=5)
    past.ended("recovers", recovered=3, unrecovered=3)
    past.ended("hardly began", recovered=0, unrecovered=4)
    assert sorted(past.fires_for("Refusals do not recover")) == ["gives up", "never recovers"]


def test_the_gate_never_fires_when_many_calls_pass_and_none_wants_a_prerequisite(
    past: Past,
) -> None:
    past.allowed(100, "busy")
    assert past.fires_for("The gate never fires") == []
    past.refused(1, "curious", rule="grant")
    assert past.fires_for("The gate never fires") == [""]
    past.refused(1, "hasty")
    assert past.fires_for("The gate never fires") == []
