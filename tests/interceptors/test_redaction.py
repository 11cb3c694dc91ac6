import json
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interceptors import JsonValue, Redactor
from interceptors.redaction import INPUT_BYTES, PREVIEW_BYTES, cut, storable

SECRET = "correct-horse-battery"
KNOWING = Redactor([SECRET])
PLAIN = Redactor()


def size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())


@pytest.mark.parametrize(
    "key",
    [
        *("password", "PASS", "client_secret", "accessToken", "api-key", "apikey", "API_KEY"),
        *("Authorization", "Set-Cookie", "credentials"),
    ],
)
def test_values_under_secret_names_are_blotted_out_at_any_depth(key: str) -> None:
    value: JsonValue = {"a": [{"b": {key: {"user": "bob", "pin": 1}}}]}
    assert PLAIN.inputs({"x": value}) == {"x": {"a": [{"b": {key: "[redacted]"}}]}}
    assert PLAIN.text(json.dumps(value)) == json.dumps({"a": [{"b": {key: "[redacted]"}}]})


def test_what_is_no_secret_is_left_as_it_is() -> None:
    value: dict[str, JsonValue] = {
        "q": "where is Bob?",
        "n": [1, 2.5, True, None, {"x": []}],
        "Bearer": "of news",
    }
    assert PLAIN.inputs(value) == value
    text = '{ "q" :  "kept as it was written" }'
    assert PLAIN.text(text) == text


def test_further_names_may_be_patterns_for_a_run_and_exact_names_for_a_skill() -> None:
    redactor = Redactor(keys=["^iban$"])
    shown = redactor.inputs({"iban": "1", "ssn": "2", "ssn2": "3"}, ["ssn"])
    assert shown == {"iban": "[redacted]", "ssn": "[redacted]", "ssn2": "3"}


@pytest.mark.parametrize(
    "text", ["ssn: 078-05", "ssn=078-05", '"ssn": "078-05', "x ssn = '078-05'"]
)
def test_a_skills_names_count_in_a_text_too(text: str) -> None:
    assert "078" not in PLAIN.preview(text, ["ssn"])
    assert "078" in PLAIN.preview(text)


def test_known_secrets_are_blotted_out_of_keys_values_and_texts() -> None:
    assert KNOWING.inputs({f"k {SECRET}": [f"a{SECRET}b"]}) == {"k [redacted]": ["a[redacted]b"]}
    assert KNOWING.text(f"a{SECRET}{SECRET}b") == "a[redacted][redacted]b"


def test_a_value_under_eight_characters_is_no_known_secret() -> None:
    assert Redactor(["1234567", "12345678"]).text("1234567 12345678") == "1234567 [redacted]"


def test_the_longer_of_two_secrets_is_found_first() -> None:
    assert Redactor(["abcdefgh", "abcdefghijk"]).text("abcdefghijk") == "[redacted]"


def test_a_secret_that_is_a_number_is_found_as_a_number() -> None:
    redactor = Redactor(["12345678"])
    assert redactor.inputs({"pin": 12345678, "n": 5}) == {"pin": "[redacted]", "n": 5}
    assert redactor.text('{"pin": 12345678}') == '{"pin": "[redacted]"}'


@pytest.mark.parametrize("secret", ['pa"ss\\wo\nrd', "pässwörd!"])
def test_a_secret_is_found_as_it_stands_in_json(secret: str) -> None:
    redactor = Redactor([secret])
    for written in (json.dumps(secret), json.dumps(secret, ensure_ascii=False)):
        assert redactor.text(f"log: {written}") == 'log: "[redacted]"'


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Bearer abc.def-1", "Bearer [redacted]"),
        ("bearer   abc", "Bearer [redacted]"),
        ("curl -H 'X: Bearer abc' url", "curl -H 'X: Bearer [redacted]' url"),
        ("password=hunter2&x=1", "password=[redacted]&x=1"),
        ("db_password = hunter2, x", "db_password = [redacted], x"),
        ("API-Key: abc; x", "API-Key: [redacted]; x"),
        ("secret='two words' x", "secret=[redacted] x"),
        ('{"password": "two words", x', '{"password": [redacted], x'),
        (r"x {\"password\": \"two words\", \"a\": 1}", r"x {\"password\": [redacted], \"a\": 1}"),
        ('x "password": "say \\"hi\\" to", y', 'x "password": [redacted], y'),
        ("Authorization: Basic dXNlcjpwYXNz x", "Authorization: [redacted] x"),
        ('x "credentials": {"pin": "12"}', 'x "credentials": [redacted]'),
        ('x "tokens": ["ab", "cd"]', 'x "tokens": [redacted]'),
        ("password: 'cut off", "password: [redacted]"),
        ('password: "cut off\\', "password: [redacted]"),
    ],
)
def test_a_text_that_is_no_json_is_searched_for_names_and_values(text: str, shown: str) -> None:
    assert PLAIN.text(text) == shown
    assert PLAIN.text(shown) == shown


def test_a_text_within_a_value_is_searched_like_a_text() -> None:
    nested = json.dumps({"body": json.dumps({"password": "hunter2", "a": 1})})
    assert "hunter2" not in PLAIN.text(nested)
    assert PLAIN.inputs({"cmd": "mysql --password=hunter2 x"}) == {
        "cmd": "mysql --password=[redacted] x"
    }


def test_of_a_key_that_stands_twice_neither_value_is_shown() -> None:
    text = f'{{"a": "{SECRET}", "a": "fine", "password": "hunter2", "password": "[redacted]"}}'
    shown = KNOWING.text(text)
    assert SECRET not in shown
    assert "hunter2" not in shown


def test_a_hidden_name_in_a_huge_json_text_stays_hidden() -> None:
    text = json.dumps({"ssn": "078-05", "auth": {"pin": "4711"}, "rows": ["y" * 100] * 1000})
    shown = PLAIN.preview(text, ["ssn"])
    assert "078-05" not in shown
    assert "4711" not in shown


def test_deep_values_end_in_an_ellipsis() -> None:
    value: JsonValue = "bottom"
    for _ in range(500):
        value = [value]
    assert "bottom" not in json.dumps(PLAIN.inputs({"x": value}))
    deep = "[" * 100_000
    assert PLAIN.preview(deep) == cut(deep, PREVIEW_BYTES)


@pytest.mark.parametrize(
    "value",
    ["é" * 50_000, '"' * 50_000, "\\" * 50_000, "\n" * 50_000, ["xxx"] * 9000, "日" * 9000],
)
def test_huge_inputs_take_at_most_eight_kib_of_json(value: JsonValue) -> None:
    shown = PLAIN.inputs({"x": value})
    assert 0.9 * INPUT_BYTES < size(shown) <= INPUT_BYTES
    assert set(shown) == {"truncated", "characters"}


def test_inputs_that_just_fit_are_left_whole() -> None:
    arguments = {"x": "a" * (INPUT_BYTES - size({"x": ""}))}
    assert PLAIN.inputs(arguments) == arguments
    assert "truncated" in PLAIN.inputs({"x": arguments["x"] + "a"})


def test_what_json_cannot_hold_is_shown_as_text() -> None:
    shown = PLAIN.inputs({"n": float("nan"), "i": float("-inf"), "t": (1, 2)})  # type: ignore[dict-item]  # from untyped code
    assert shown == {"n": "nan", "i": "-inf", "t": [1, 2]}


def test_an_integer_of_too_many_digits_is_not_shown() -> None:
    assert PLAIN.inputs({"n": 10**5000}) == {"truncated": "…"}


@pytest.mark.parametrize(
    "unit", ["a", "pass", 'pass="', "pass='", "\\", "pass\\", "Bearer ", "pass: ", "[", "token "]
)
def test_no_text_takes_long(unit: str) -> None:
    text = unit * 100_000
    before = time.process_time()
    PLAIN.preview(text)
    assert time.process_time() - before < 2


@pytest.mark.parametrize("length", [8, 100, 3000, 20_000])
def test_no_secret_is_cut_in_half_at_the_end_of_what_is_searched(length: int) -> None:
    secret = "".join(chr(ord("A") + number % 26) for number in range(length))
    redactor = Redactor([secret])
    for before in range(0, 40, 7):
        text = "x" * before + secret * (50_000 // length + 2)
        shown = redactor.preview(text)
        assert "ABCD" not in shown
        assert len(shown.encode()) <= PREVIEW_BYTES


SECRETS = st.lists(st.text("abXY12-_.", min_size=8, max_size=40), min_size=1, max_size=4)
FILLERS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=30)


@example(secrets=["abababab"], parts=["", "ab"], times=60)
@given(SECRETS, st.lists(FILLERS, max_size=6), st.sampled_from([1, 60]))
def test_no_secret_survives_in_a_preview(secrets: list[str], parts: list[str], times: int) -> None:
    text = "".join(part + secret for part in [*parts, ""] for secret in secrets) * times
    shown = Redactor(secrets).preview(text)
    assert not any(secret in shown for secret in secrets)
    assert len(shown.encode()) <= PREVIEW_BYTES


VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def with_secret(value: JsonValue, secret: str) -> JsonValue:
    match value:
        case str():
            return value + secret
        case list():
            return [with_secret(item, secret) for item in value]
        case dict():
            return {f"{key}{secret}": with_secret(item, secret) for key, item in value.items()}
        case _:
            return value


@given(st.dictionaries(st.text(), VALUES), st.text("abXY12-_.", min_size=8))
def test_no_secret_survives_in_inputs_and_any_store_takes_them(
    arguments: dict[str, JsonValue], secret: str
) -> None:
    value = with_secret(arguments, secret)
    assert isinstance(value, dict)
    shown = json.dumps(Redactor([secret]).inputs(value), ensure_ascii=False, allow_nan=False)
    assert secret not in shown
    assert len(shown.encode()) <= INPUT_BYTES
    assert r"\u0000" not in shown


@given(st.text(st.characters(codec=None)), st.integers(min_value=3, max_value=60))
def test_cut_keeps_the_longest_beginning_that_fits(text: str, limit: int) -> None:
    text = storable(text)
    shown = cut(text, limit)
    assert len(shown.encode()) <= limit
    if shown != text:
        assert shown.endswith("…")
        kept = shown[:-1]
        assert text.startswith(kept)
        assert len((text[: len(kept) + 1] + "…").encode()) > limit


@given(st.text(st.characters(codec=None)))
def test_storable_text_can_be_encoded_and_holds_no_nul(text: str) -> None:
    stored = storable(text)
    stored.encode()
    assert "\0" not in stored
    assert storable(stored) == stored


def test_a_hostile_text_is_searched_in_no_time_and_huge_ones_in_part() -> None:
    hostile = "pass=" + "\\" * 200_000 + '"' + ("\\" * 199_999 + "x") * 4
    shown = Redactor(["supersecretvalue"]).inputs({"q": hostile, "r": "supersecretvalue" * 9000})
    assert "supersecret" not in str(shown)
