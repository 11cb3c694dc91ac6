import json
import math
import sqlite3
from contextlib import closing
from dataclasses import replace
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interceptors import AuditRecord
from seriatim.stores.rows import COLUMNS, from_row, json_text, to_row
from tests.support.records import COMPLETED, REFUSED

ANY_TEXT = st.text(st.characters(exclude_categories=()))  # lone surrogates and all
TEXT = st.text()
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | ANY_TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner),
    max_leaves=4,
)


def through_sqlite(record: AuditRecord) -> AuditRecord:
    marks = ", ".join("?" * len(COLUMNS))
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE audit ({', '.join(COLUMNS)})")
        connection.execute(f"INSERT INTO audit VALUES ({marks})", to_row(record))
        return from_row(connection.execute("SELECT * FROM audit").fetchone())


@settings(max_examples=50)
@given(
    skill=TEXT,
    reason=st.none() | TEXT,
    missing=st.lists(ANY_TEXT).map(tuple),
    inputs=st.dictionaries(ANY_TEXT, JSON),
    duration=st.floats(min_value=0, allow_infinity=False),
)
def test_a_record_comes_back_as_it_went(**fields: object) -> None:
    record = replace(REFUSED, **fields)  # type: ignore[arg-type]  # hypothesis keeps no types
    assert through_sqlite(record) == record


@given(ANY_TEXT)
def test_any_name_can_be_stored(text: str) -> None:
    found = through_sqlite(replace(COMPLETED, skill=text, output=text))
    assert found.skill == text.encode(errors="backslashreplace").decode()


def test_a_lone_surrogate_is_stored_as_its_escape() -> None:
    assert through_sqlite(replace(COMPLETED, skill="a\ud800b")).skill == "a\\ud800b"


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_json_cannot_say_becomes_a_string(number: float) -> None:
    text = json_text({"deep": [number]})
    assert json.loads(text, parse_constant=pytest.fail)["deep"][0] in (
        "NaN",
        "Infinity",
        "-Infinity",
    )


def test_a_read_only_mapping_is_an_object() -> None:
    assert json_text(MappingProxyType({"a": MappingProxyType({})})) == '{"a": {}}'
