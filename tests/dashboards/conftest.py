"""What the tests of the dashboards share: the checked-in files, and every query in them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.support.metrics_server import MetricsServer, running
from tests.support.services import ROOT, all_required, made_by

HERE: Final = ROOT / "dashboards"
LANGUAGES: Final = {"prometheus": ("promql", "expr"), "tempo": ("traceql", "query")}

Json = dict[str, Any]


@dataclass(frozen=True)
class Shown:
    """A query, and where it stands."""

    place: str
    language: str
    text: str

    def filled(self, variables: Mapping[str, str]) -> str:
        """Return the query with values in the place of variables, as Grafana fills them in."""
        text = self.text
        # The longest first: one name begins another.
        for name in sorted(variables, key=len, reverse=True):
            text = text.replace(f"${name}", variables[name])
        assert "$" not in text, f"{self.place}: a variable is left in {text}"
        return text


@pytest.fixture(scope="session")
def boards() -> dict[str, Json]:
    """The dashboards, by the names of their files."""
    files = sorted((HERE / "grafana").glob("*.json"))
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}


@pytest.fixture(scope="session")
def panels(boards: Mapping[str, Json]) -> dict[str, list[Json]]:
    """The panels of each dashboard, those in rows included and the rows left out."""
    return {name: list(_panels(board)) for name, board in boards.items()}


def _panels(board: Json) -> Iterator[Json]:
    for panel in board["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


@pytest.fixture(scope="session")
def alert_rules() -> list[Json]:
    """The alert rules, of all groups."""
    file = HERE / "provisioning" / "alerting" / "rules.yaml"
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    return [rule for group in content["groups"] for rule in group["rules"]]


@pytest.fixture(scope="session")
def queries(panels: Mapping[str, list[Json]], alert_rules: list[Json]) -> list[Shown]:
    """Every PromQL and TraceQL query of every panel and alert."""
    found = [
        Shown(f"{board}: {panel['title']}", language, target[field])
        for board, shown in panels.items()
        for panel in shown
        for target in panel["targets"]
        for language, field in [LANGUAGES.get(target["datasource"]["type"], ("", ""))]
        if language
    ]
    alerts = [
        Shown(f"alert: {rule['title']}", "promql", query["model"]["expr"])
        for rule in alert_rules
        for query in rule["data"]
        if query["datasourceUid"] == "prometheus"
    ]
    return found + alerts


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetricsServer]:
    """A metrics server of the test's own; it is built first only where services are required."""
    program = made_by("metrics-server", *(() if all_required() else ("--built",)))
    with running(Path(program), tmp_path_factory.mktemp("metrics-server")) as server:
        yield server
