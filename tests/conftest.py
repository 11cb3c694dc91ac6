"""What all tests share."""

import pytest


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Both event loops; a module whose dependency knows only one overrides this."""
    return str(request.param)
