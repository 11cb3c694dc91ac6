"""How long a server is left alone."""

from hypothesis import given
from hypothesis import strategies as st

from seriatim.runtime.servers.pauses import FIRST, GROWTH, LONGEST, WELL, Pauses


def test_pauses_grow_to_a_bound() -> None:
    pauses = Pauses()
    taken = [pauses.after(0) for _ in range(12)]
    assert taken[:4] == [FIRST, FIRST * GROWTH, FIRST * GROWTH**2, FIRST * GROWTH**3]
    assert taken[-1] == LONGEST


def test_whoever_was_well_for_long_is_taken_up_again_at_once() -> None:
    pauses = Pauses()
    for _ in range(12):
        pauses.after(WELL - 1)
    assert pauses.after(WELL) == FIRST
    assert pauses.after(0) == FIRST * GROWTH


@given(st.lists(st.floats(0, 2 * WELL)))
def test_no_pause_is_shorter_than_the_first_or_longer_than_the_longest(lives: list[float]) -> None:
    pauses = Pauses()
    assert all(FIRST <= pauses.after(answered) <= LONGEST for answered in lives)
