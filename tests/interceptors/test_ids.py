import time
import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interceptors import new_id

MOMENTS = st.integers(min_value=0, max_value=(1 << 48) * 1_000_000 - 1)


def test_an_id_is_a_uuid_of_version_7() -> None:
    text = new_id()
    made = uuid.UUID(text)
    assert str(made) == text
    assert (made.version, made.variant) == (7, uuid.RFC_4122)


def test_an_id_holds_the_millisecond_at_which_it_was_made() -> None:
    before = time.time_ns() // 1_000_000
    milliseconds = uuid.UUID(new_id()).int >> 80
    assert before <= milliseconds <= time.time_ns() // 1_000_000


def test_many_ids_are_all_different() -> None:
    assert len({new_id() for _ in range(10_000)}) == 10_000


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=MOMENTS, gap=st.integers(min_value=245, max_value=10**12))
def test_ids_sort_by_time_to_a_quarter_of_a_microsecond(
    monkeypatch: pytest.MonkeyPatch, first: int, gap: int
) -> None:
    last = min(first + gap, (1 << 48) * 1_000_000 - 1)
    if last - first < 245:
        return
    monkeypatch.setattr(time, "time_ns", lambda: first)
    earlier = new_id()
    monkeypatch.setattr(time, "time_ns", lambda: last)
    later = new_id()
    monkeypatch.undo()
    assert earlier < later
    assert {uuid.UUID(earlier).version, uuid.UUID(later).version} == {7}
