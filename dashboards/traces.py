"""Tables of traces, from Jaeger and from Tempo; a click on a row opens its trace."""

from typing import Final

from grafana_foundation_sdk.builders import table, tempo
from grafana_foundation_sdk.builders.dashboard import DashboardLink
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.runtime import UnknownDataquery
from grafana_foundation_sdk.models.dashboard import DashboardLinkType
from grafana_foundation_sdk.models.tempo import SearchTableType

from dashboards.panels import WIDTH
from dashboards.variables import JAEGER, SERVICE, TEMPO

ROWS: Final = 50


class JaegerSearch(Builder[UnknownDataquery]):
    """Builds a search in Jaeger by a tag; the SDK has no builder for this data source."""

    def __init__(self, key: str, value: str) -> None:
        self._tag: Final = f"{key}={value}"

    def build(self) -> UnknownDataquery:
        return UnknownDataquery(
            {
                "refId": "A",
                "datasource": JAEGER.to_json(),
                "queryType": "search",
                "service": SERVICE,
                "tags": self._tag,
                "limit": ROWS,
            }
        )


def in_jaeger(title: str, description: str, key: str, value: str) -> table.Panel:
    """Return the latest traces that hold a span with a tag, with a link to the same in Jaeger."""
    # Encoded by hand: the variables in it are Grafana's to fill in.
    search = f"search?service={SERVICE}&tags=%7B%22{key}%22%3A%22{value}%22%7D&limit={ROWS}"
    link = (
        DashboardLink("The same search in Jaeger")
        .type(DashboardLinkType.LINK)
        .url(f"${{jaeger_page}}/{search}")
        .target_blank(True)
    )
    return (
        _table(title, description)
        .datasource(JAEGER)
        .with_target(JaegerSearch(key, value))
        .links([link])
    )


def in_tempo(title: str, description: str, query: str) -> table.Panel:
    """Return the latest spans that a TraceQL query finds, with what it selects as columns."""
    return (
        _table(title, description)
        .datasource(TEMPO)
        .with_target(
            tempo.Dataquery()
            .ref_id("A")
            .datasource(TEMPO)
            .query_type("traceql")
            .query(query)
            .filters([])
            .limit(ROWS)
            .table_type(SearchTableType.SPANS)
        )
    )


def _table(title: str, description: str) -> table.Panel:
    # Columns have the units of their data source (a time, a duration); `string` changes none.
    return table.Panel().title(title).description(description).unit("string").height(10).span(WIDTH)
