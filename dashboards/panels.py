"""The kinds of panel that the dashboards are made of, each with all that makes it readable."""

import string
from collections.abc import Mapping, Sequence
from typing import Final

from grafana_foundation_sdk.builders import bargauge, common, prometheus, stat, table, timeseries
from grafana_foundation_sdk.builders.dashboard import FieldColor, ThresholdsConfig
from grafana_foundation_sdk.models.common import (
    BigValueGraphMode,
    BigValueTextMode,
    GraphDrawStyle,
    SortOrder,
    StackingMode,
    TooltipDisplayMode,
    VisibilityMode,
    VizOrientation,
)
from grafana_foundation_sdk.models.dashboard import (
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.queries import Query
from dashboards.variables import PROMETHEUS

WIDTH: Final = 24
"""Columns of Grafana's grid."""

EXPORTED_EVERY: Final = "1m"
"""The least time between two points of a graph: the SDK's default interval of export."""

COUNT: Final = "short"
SHARE: Final = "percentunit"
SECONDS: Final = "s"
PER_MINUTE: Final = "cpm"


def figure(
    title: str, description: str, unit: str, expression: str, *, bad_above: Sequence[float] = ()
) -> stat.Panel:
    """Return one number for the time shown.

    Args:
        bad_above: where the number turns yellow, then red; an unjudged number has one colour.
    """
    return (
        stat.Panel()
        .title(title)
        .description(description)
        .unit(unit)
        .datasource(PROMETHEUS)
        .with_target(_instant("A", Query(expression, title)))
        .reduce_options(_latest())
        .graph_mode(BigValueGraphMode.NONE)
        .text_mode(BigValueTextMode.VALUE)
        .thresholds(_thresholds(("green", "yellow", "red") if bad_above else ("blue",), bad_above))
        .no_value("–")
        .height(4)
        .span(4)
    )


def graph(title: str, description: str, unit: str, *queries: Query) -> timeseries.Panel:
    """Return lines over time, with points where a short run leaves no line."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .unit(unit)
        .min(0)
        .datasource(PROMETHEUS)
        .interval(EXPORTED_EVERY)
        .show_points(VisibilityMode.ALWAYS)
        .legend(common.VizLegendOptions().show_legend(True))
        .tooltip(
            common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING)
        )
        .height(8)
        .span(WIDTH // 2)
    )
    for letter, query in zip(string.ascii_uppercase, queries, strict=False):
        panel.with_target(
            prometheus.Dataquery()
            .ref_id(letter)
            .datasource(PROMETHEUS)
            .expr(query.expression)
            .legend_format(query.legend)
            .range()
        )
    return panel


def stacked(title: str, description: str, unit: str, *queries: Query) -> timeseries.Panel:
    """Return bars over time that add up to a whole."""
    return (
        graph(title, description, unit, *queries)
        .draw_style(GraphDrawStyle.BARS)
        .show_points(VisibilityMode.NEVER)
        .fill_opacity(80)
        .stacking(common.StackingConfig().mode(StackingMode.NORMAL))
    )


def ranking(title: str, description: str, unit: str, query: Query) -> bargauge.Panel:
    """Return one bar for each series, over the time shown."""
    return (
        bargauge.Panel()
        .title(title)
        .description(description)
        .unit(unit)
        .min(0)
        .datasource(PROMETHEUS)
        .with_target(_instant("A", query))
        .reduce_options(_latest())
        .orientation(VizOrientation.HORIZONTAL)
        .color_scheme(FieldColor().mode(FieldColorModeId.PALETTE_CLASSIC))
        .no_value("–")
        .height(8)
        .span(WIDTH // 2)
    )


def listing(
    title: str,
    description: str,
    units: Mapping[str, str],
    labels: Mapping[str, str],
    *queries: Query,
) -> table.Panel:
    """Return a table for the time shown: columns of labels, and one of values for each query.

    Args:
        units: the unit of each column of values, by the query's legend; the first one sorts.
        labels: the heading of each label, in order.
    """
    [first, *_] = queries
    letters = dict(zip(string.ascii_uppercase, queries, strict=False))
    # Grafana calls the values of one query `Value`, and those of several `Value #A`, `Value #B`.
    values = {
        "Value" if len(queries) == 1 else f"Value #{letter}": query.legend
        for letter, query in letters.items()
    }
    columns = {**labels, **values}
    panel = (
        table.Panel()
        .title(title)
        .description(description)
        .unit(units[first.legend])
        .datasource(PROMETHEUS)
        .with_transformation(DataTransformerConfig("merge", options={}))
        .with_transformation(
            DataTransformerConfig(
                "organize",
                options={
                    "excludeByName": {"Time": True},
                    "indexByName": {name: index for index, name in enumerate(columns)},
                    "renameByName": columns,
                },
            )
        )
        .sort_by([common.TableSortByFieldState().display_name(first.legend).desc(True)])
        .height(8)
        .span(WIDTH // 2)
    )
    for letter, query in letters.items():
        panel.with_target(_instant(letter, query).format(PromQueryFormat.TABLE))
        panel.override_by_name(query.legend, [DynamicConfigValue("unit", units[query.legend])])
    return panel


def _instant(letter: str, query: Query) -> prometheus.Dataquery:
    return (
        prometheus.Dataquery()
        .ref_id(letter)
        .datasource(PROMETHEUS)
        .expr(query.expression)
        .legend_format(query.legend)
        .instant()
    )


def _latest() -> common.ReduceDataOptions:
    return common.ReduceDataOptions().calcs(["lastNotNull"])


def _thresholds(colours: Sequence[str], bounds: Sequence[float]) -> ThresholdsConfig:
    steps = zip((None, *bounds), colours, strict=False)
    return (
        ThresholdsConfig()
        .mode(ThresholdsMode.ABSOLUTE)
        .steps([Threshold(value, colour) for value, colour in steps])
    )
