"""Registrations: what one holds, and how many calls it may have in flight."""

import pytest
from mcp import MCPError

from seriatim.runtime.gateway.registrations import BUSY, CallsInFlight


def test_a_call_beyond_those_that_may_be_in_flight_is_answered_and_not_queued() -> None:
    calls = CallsInFlight(2)
    with (
        calls.one_more(),
        calls.one_more(),
        pytest.raises(MCPError, match="has 2 calls in flight, as many as it may") as busy,
        calls.one_more(),
    ):
        pytest.fail("a third call was let through")
    assert busy.value.code == BUSY
