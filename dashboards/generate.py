"""Writes the dashboards and the alert rules to the files that Grafana reads."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from dashboards.alerts import rules_file
from dashboards.board import numbered
from dashboards.calls import calls
from dashboards.gate import gate

HERE: Final = Path(__file__).parent


def files() -> Mapping[Path, str]:
    """Return what belongs into each generated file, by its path below `dashboards/`."""
    return {
        Path("grafana/gate.json"): _json(gate()),
        Path("grafana/calls.json"): _json(calls()),
        Path("provisioning/alerting/rules.yaml"): rules_file(),
    }


def _json(dashboard: Dashboard) -> str:
    return JSONEncoder(sort_keys=True, indent=2).encode(numbered(dashboard.build())) + "\n"


def main() -> None:
    """Write every file."""
    for path, content in files().items():
        (HERE / path).write_text(content, encoding="utf-8")
        sys.stderr.write(f"wrote {HERE.name}/{path}\n")


if __name__ == "__main__":
    main()
