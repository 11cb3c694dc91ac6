"""What stands at the top of the dashboards: data sources, and filters by the topology's names."""

from typing import Final

from grafana_foundation_sdk.builders.dashboard import (
    DatasourceVariable,
    QueryVariable,
    TextBoxVariable,
)
from grafana_foundation_sdk.models.common import DataSourceRef
from grafana_foundation_sdk.models.dashboard import VariableOption, VariableRefresh, VariableSort

from dashboards.queries import AGENT, DECISIONS, SERVER, SKILL, selected
from telemetry import conventions

PROMETHEUS: Final = DataSourceRef(type_val="prometheus", uid="${prometheus}")
JAEGER: Final = DataSourceRef(type_val="jaeger", uid="${jaeger}")
TEMPO: Final = DataSourceRef(type_val="tempo", uid="${tempo}")

SERVICE: Final = "$service"

BY_AGENT: Final = f'{AGENT}=~"$agent"'
BY_SKILL: Final = f'{BY_AGENT}, {SKILL}=~"$skill"'
BY_SERVER: Final = f'{BY_SKILL}, {SERVER}=~"$server"'


def source(name: str) -> DatasourceVariable:
    """Return the choice of a data source, named like its type."""
    return DatasourceVariable(name).label(name.capitalize()).type(name)


def names(name: str, label: str, *, among: str = "") -> QueryVariable:
    """Return the choice of any number of values of a label.

    Args:
        among: matchers of the series whose values are offered.
    """
    query = f"label_values({selected(DECISIONS, among)}, {label})"
    return (
        QueryVariable(name)
        .label(name.capitalize())
        .datasource(PROMETHEUS)
        .query(query)
        .definition(query)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(VariableOption(selected=True, text=["All"], value=["$__all"]))
    )


def agents() -> QueryVariable:
    """Return the choice of agents."""
    return names("agent", AGENT)


def skills() -> QueryVariable:
    """Return the choice of skills, of the chosen agents."""
    return names("skill", SKILL, among=BY_AGENT)


def servers() -> QueryVariable:
    """Return the choice of servers, of the chosen agents and skills."""
    return names("server", SERVER, among=BY_SKILL)


def service() -> TextBoxVariable:
    """Return the service name under which traces are looked for (`OTEL_SERVICE_NAME`)."""
    return (
        TextBoxVariable("service")
        .label("Service")
        .default_value(conventions.SCOPE)
        .current(VariableOption(text=conventions.SCOPE, value=conventions.SCOPE))
    )


def jaeger_page() -> TextBoxVariable:
    """Return the address of Jaeger's own pages, as a reader's browser reaches them."""
    address = "http://localhost:16686"
    return (
        TextBoxVariable("jaeger_page")
        .label("Jaeger's pages")
        .default_value(address)
        .current(VariableOption(text=address, value=address))
    )
