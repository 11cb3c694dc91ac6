"""Whatever somebody sends, an attribute stays short and can be encoded."""

from hypothesis import given
from hypothesis import strategies as st

from telemetry import KnownNames
from telemetry.bounds import LIST_ITEMS, TEXT_CHARACTERS, bounded, bounded_list

ANY_TEXT = st.text(st.characters(codec=None), max_size=50).flatmap(
    lambda text: st.integers(1, 200).map(lambda times: text * times)
)


@given(ANY_TEXT)
def test_a_text_is_short_and_encodable(text: str) -> None:
    shown = bounded(text)
    shown.encode()
    assert len(shown) <= TEXT_CHARACTERS


@given(st.text(max_size=TEXT_CHARACTERS))
def test_a_text_that_fits_is_unchanged(text: str) -> None:
    assert bounded(text) == text


def test_a_long_list_ends_in_an_ellipsis() -> None:
    items = [str(number) for number in range(LIST_ITEMS + 1)]
    assert bounded_list(items) == (*items[:LIST_ITEMS], "…")
    assert bounded_list(items[:LIST_ITEMS]) == tuple(items[:LIST_ITEMS])


def test_a_name_that_is_not_known_becomes_one_value() -> None:
    names = KnownNames(["a"])
    assert [names.of("a"), names.of("b"), names.of("c")] == ["a", "(unknown)", "(unknown)"]
