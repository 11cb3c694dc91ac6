"""Every name that a dashboard or an alert uses is one that telemetry emits."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from telemetry import conventions

Json = dict[str, Any]

WORDS: Final = {
    *("and", "bool", "by", "offset", "or", "unless"),
    *("ceil", "histogram_quantile", "max_over_time", "sum", "topk", "vector"),
    "le",
}
"""What PromQL itself brings: operators, functions, and the label of a bucket's bound."""

NAMES: Final = {
    value for name, value in vars(conventions).items() if name.isupper() and isinstance(value, str)
}
INSTRUMENTS: Final = {
    *(conventions.DECISIONS, conventions.MISSED, conventions.RECOVERIES, conventions.UNRECOVERED),
    *(conventions.CALL_DURATION, conventions.GATE_DURATION, conventions.RECOVERY_CALLS),
    *(conventions.CALLS_ACTIVE, conventions.AUDIT_QUEUE, conventions.TELEMETRY_DROPPED),
}


def _series() -> set[str]:
    """Return each instrument's name, with what back ends add for its kind and unit."""
    plain = {name.replace(".", "_") for name in INSTRUMENTS}
    endings = ("", "_total", "_bucket", "_sum", "_count")
    return {f"{name}{unit}{end}" for name in plain for unit in ("", "_seconds") for end in endings}


def _words(expression: str) -> Iterable[str]:
    """Return the names in an expression: no strings, numbers, durations and variables."""
    bare = re.sub(r'"[^"]*"|\$\w+|\d[\w.]*', " ", expression)
    return re.findall(r"[a-zA-Z_]\w*", bare)


def test_every_name_in_promql_is_one_of_ours(queries: Sequence[Any]) -> None:
    known = WORDS | _series() | {name.replace(".", "_") for name in NAMES}
    for query in queries:
        if query.language == "promql":
            assert set(_words(query.text)) <= known, query.place


def test_every_name_in_traceql_is_one_of_ours(queries: Sequence[Any]) -> None:
    texts = [query for query in queries if query.language == "traceql"]
    assert texts
    for query in texts:
        named = re.findall(r"(?:span|event)\.([\w.]+)", query.text)
        assert named, query.place
        assert set(named) <= NAMES, query.place


def test_legends_columns_and_annotations_name_labels_of_ours(
    panels: Mapping[str, list[Json]], alert_rules: Sequence[Json]
) -> None:
    labels = {name.replace(".", "_") for name in NAMES}
    shown = [panel for board in panels.values() for panel in board]
    legends = [target.get("legendFormat", "") for panel in shown for target in panel["targets"]]
    used = set(re.findall(r"{{(\w+)}}", " ".join(legends)))
    for rule in alert_rules:
        used |= set(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
    for panel in shown:
        for step in panel.get("transformations", ()):
            used |= set(step["options"].get("renameByName", ()))
    assert used
    assert {name for name in used if not name.startswith("Value")} <= labels


def test_variables_offer_labels_of_ours(
    boards: Mapping[str, Json],
) -> None:
    known = _series() | {name.replace(".", "_") for name in NAMES} | {"label_values"}
    texts = [
        variable["query"]
        for board in boards.values()
        for variable in board["templating"]["list"]
        if variable["type"] == "query"
    ]
    assert texts
    for text in texts:
        assert set(_words(text)) <= known


def test_the_tag_that_jaeger_is_asked_for_is_ours_or_its_own(
    panels: Mapping[str, list[Json]],
) -> None:
    tags = {
        target["tags"].split("=")[0]
        for board in panels.values()
        for panel in board
        for target in panel["targets"]
        if target["datasource"]["type"] == "jaeger"
    }
    assert tags == {conventions.POLICY_DECISION, "error"}
