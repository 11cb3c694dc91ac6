"""What all tests share."""

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is slow; that an example took long says nothing about the code.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Both event loops; a module whose dependency knows only one overrides this."""
    return str(request.param)
