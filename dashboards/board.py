"""What the dashboards have in common: how they begin, and how their panels are numbered."""

from collections.abc import Sequence

from grafana_foundation_sdk.builders.dashboard import Dashboard, DashboardLink
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as models

TAG = "seriatim"


def board(
    title: str,
    uid: str,
    description: str,
    variables: Sequence[Builder[models.VariableModel]],
) -> Dashboard:
    """Return a dashboard without panels; `uid` is a part of its address."""
    others = (
        DashboardLink("Seriatim")
        .type(models.DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .include_vars(True)
        .keep_time(True)
    )
    return (
        Dashboard(title)
        .uid(uid)
        .description(description)
        .tags([TAG])
        .refresh("30s")
        .time("now-1h", "now")
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .variables(list(variables))
        .link(others)
    )


def numbered(built: models.Dashboard) -> models.Dashboard:
    """Give each panel of a dashboard, those in its rows included, an id of its own."""
    number = 0
    for outer in built.panels or []:
        inner = outer.panels if isinstance(outer, models.RowPanel) else []
        for panel in (outer, *inner):
            number += 1
            panel.id_val = number
    return built
