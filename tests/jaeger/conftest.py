"""The Jaeger that these tests share, and the environment of the processes that report to it."""

import os
from collections.abc import Iterator

import pytest

from tests.jaeger.server import Jaeger, running_jaeger
from tests.support.services import made_by


@pytest.fixture(scope="session")
def jaeger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jaeger]:
    binary = made_by("jaeger", "--built")
    with running_jaeger(binary, tmp_path_factory.mktemp("jaeger")) as jaeger:
        yield jaeger


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """Without what would lead telemetry elsewhere, and without metrics: Jaeger takes none."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL_", "SERIATIM_"))
    }
    return kept | {"NO_PROXY": "127.0.0.1", "OTEL_METRICS_EXPORTER": "none"}
