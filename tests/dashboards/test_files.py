"""The checked-in files: made by the generator, whole, and pointing at things that exist."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.generate import files
from tests.support.services import ROOT

HERE = ROOT / "dashboards"

Json = dict[str, Any]
Panels = Mapping[str, list[Json]]


def _yaml(path: str) -> Any:
    return yaml.safe_load((HERE / path).read_text(encoding="utf-8"))


def _everywhere(value: Any, key: str) -> Iterator[Any]:
    """Find the values of a key at any depth."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == key:
                yield inner
            yield from _everywhere(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from _everywhere(inner, key)


def test_the_files_are_what_the_generator_makes() -> None:
    for path, content in files().items():
        assert (HERE / path).read_text(encoding="utf-8") == content, (
            f"{path} is stale: run `python -m dashboards.generate`"
        )


def test_no_generated_file_is_left_over() -> None:
    generated = {HERE / path for path in files()}
    assert set((HERE / "grafana").iterdir()) <= generated


def test_the_dashboards_are_whole_by_the_models_of_the_sdk(boards: Mapping[str, Json]) -> None:
    for board in boards.values():
        read = Dashboard.from_json(board)
        assert json.loads(JSONEncoder().encode(read)) == board


def test_each_panel_says_what_it_shows_and_in_which_unit(panels: Panels) -> None:
    for board, shown in panels.items():
        for panel in shown:
            place = f"{board}: {panel.get('title')}"
            assert panel.get("title"), place
            assert panel.get("description", "").endswith((".", "...")), place
            assert panel["fieldConfig"]["defaults"].get("unit"), place
            assert panel["targets"], place


def test_the_ids_of_panels_are_unique(boards: Mapping[str, Json]) -> None:
    for board in boards.values():
        ids = list(_everywhere(board["panels"], "id"))
        ids = [id_ for id_ in ids if isinstance(id_, int)]
        assert len(ids) == len(set(ids))
    assert len({board["uid"] for board in boards.values()}) == len(boards)


def test_panels_lie_within_the_grid_and_not_on_one_another(boards: Mapping[str, Json]) -> None:
    for board in boards.values():
        taken: set[tuple[int, int]] = set()
        for panel in board["panels"]:
            at = panel["gridPos"]
            cells = {
                (at["x"] + column, at["y"] + row)
                for column in range(at["w"])
                for row in range(at["h"])
            }
            assert cells, panel["title"]
            assert max(column for column, _ in cells) < 24, panel["title"]
            assert not cells & taken, panel["title"]
            taken |= cells


def test_every_data_source_is_a_choice_of_the_reader(boards: Mapping[str, Json]) -> None:
    for board in boards.values():
        chosen = {
            f"${{{variable['name']}}}"
            for variable in board["templating"]["list"]
            if variable["type"] == "datasource"
        }
        uids = [source["uid"] for source in _everywhere(board, "datasource")]
        assert uids
        assert set(uids) <= chosen


def test_the_filters_are_agent_skill_and_server(boards: Mapping[str, Json]) -> None:
    filters = {
        name: [
            variable["name"]
            for variable in board["templating"]["list"]
            if variable["type"] == "query"
        ]
        for name, board in boards.items()
    }
    assert filters == {"gate": ["agent", "skill"], "calls": ["agent", "skill", "server"]}


def test_each_dashboard_lists_traces_in_jaeger_and_in_tempo(panels: Panels) -> None:
    for shown in panels.values():
        sources = [panel["datasource"]["type"] for panel in shown]
        assert sources.count("jaeger") == sources.count("tempo") == 1
    [search] = [
        target
        for panel in panels["gate"]
        for target in panel["targets"]
        if target["datasource"]["type"] == "jaeger"
    ]
    assert (search["queryType"], search["tags"]) == ("search", "policy_decision=deny")


def test_alert_rules_ask_a_data_source_that_is_provisioned(alert_rules: list[Json]) -> None:
    uids = {
        source["uid"]
        for source in _yaml("provisioning/datasources/datasources.yaml")["datasources"]
    }
    for rule in alert_rules:
        asked = {query["datasourceUid"] for query in rule["data"]} - {"__expr__"}
        assert asked
        assert asked <= uids
        assert rule["condition"] in {query["refId"] for query in rule["data"]}
    assert len({rule["uid"] for rule in alert_rules}) == len(alert_rules)


def test_alert_rules_use_only_fields_that_provisioning_reads(alert_rules: list[Json]) -> None:
    known = {
        *("uid", "title", "condition", "data", "noDataState", "execErrState", "for"),
        *("annotations", "labels"),
    }
    for rule in alert_rules:
        assert set(rule) == known


def test_the_services_are_pinned_and_mount_files_that_exist() -> None:
    services = _yaml("compose.yaml")["services"]
    assert set(services) == {"collector", "jaeger", "prometheus", "grafana"}
    for name, service in services.items():
        _, tag = service["image"].split(":")
        assert tag.removeprefix("v").replace(".", "").isdigit(), name
        for volume in service.get("volumes", ()):
            assert (HERE / volume.split(":")[0]).exists(), volume
        for port in service["ports"]:
            assert port.startswith("127.0.0.1:"), port


def test_the_provisioned_dashboards_are_where_grafana_looks_for_them() -> None:
    [provider] = _yaml("provisioning/dashboards/dashboards.yaml")["providers"]
    mounts = dict(
        volume.split(":")[:2][::-1]
        for volume in _yaml("compose.yaml")["services"]["grafana"]["volumes"]
    )
    assert mounts[provider["options"]["path"]] == "./grafana"
    assert mounts["/etc/grafana/provisioning"] == "./provisioning"


def test_what_the_services_call_each_other_is_what_they_are_called() -> None:
    services = set(_yaml("compose.yaml")["services"])
    sources = _yaml("provisioning/datasources/datasources.yaml")["datasources"]
    exporters = _yaml("collector.yaml")["exporters"].values()
    for url in [*(source["url"] for source in sources), *(one["endpoint"] for one in exporters)]:
        host = url.removeprefix("http://").split(":")[0]
        assert host in services
