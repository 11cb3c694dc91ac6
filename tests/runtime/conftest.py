from collections.abc import Iterator

import pytest

from tests.support.relays import Relays, relays


@pytest.fixture(scope="session")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relays]:
    """The corpus server and gateways of it, which take some seconds to start."""
    with relays(tmp_path_factory.mktemp("relays")) as running:
        yield running
