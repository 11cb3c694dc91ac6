import pytest

from seriatim.topology.durations import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("15m", 900), ("8h", 28800), ("7d", 604800), ("1h30m", 5400), ("1d1s", 86401)],
)
def test_a_length_of_time_is_read(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "0s", "8", "8 h", "8H", "h", "-1h", "1.5h", "30m1h", "1h1h", "99999999d", "٣h", "8h\n"],
)
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no length of time"):
        parse_duration(text)
