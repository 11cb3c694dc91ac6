"""Ids of skills: readable, valid, unique, and the same every time."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interceptors import ToolRef
from seriatim.cli.init_names import LONGEST, free, skill_ids, slug

VALID = re.compile(r"[a-z][a-z0-9-]*")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("read_file", "read-file"),
        ("readFile", "read-file"),
        ("browser.tab/open", "browser-tab-open"),
        ("  Größe ändern!  ", "grosse-andern"),
        ("3d_view", "tool-3d-view"),
        ("__", ""),
        ("検索", ""),
        ("a" * 200, "a" * LONGEST),
    ],
)
def test_a_slug_is_what_a_reader_would_expect(text: str, wanted: str) -> None:
    assert slug(text) == wanted


def named(*tools: tuple[str, str], **known: str) -> dict[tuple[str, str], str]:
    """Name tools; `known` are ids of tools of the server `a`."""
    refs = [ToolRef(server, name) for server, name in tools]
    of_a = {ToolRef("a", name): id_ for name, id_ in known.items()}
    return {(ref.server, ref.name): id_ for ref, id_ in skill_ids(refs, of_a, ()).items()}


def test_a_tool_has_its_own_name_and_with_its_server_where_two_clash() -> None:
    assert named(("a", "read"), ("a", "list"), ("b", "list")) == {
        ("a", "read"): "read",
        ("a", "list"): "a-list",
        ("b", "list"): "b-list",
    }


def test_names_of_one_server_that_differ_in_a_sign_are_told_apart() -> None:
    assert list(named(("a", "read_file"), ("a", "read-file"), ("a", "検索")).values()) == [
        "a-read-file",
        "a-read-file-2",
        "a-tool",
    ]


def test_an_id_that_somebody_has_stays_his() -> None:
    assert named(("a", "list"), ("b", "list"), list="list") == {("b", "list"): "b-list"}
    refs = [ToolRef("a", "list")]
    assert skill_ids(refs, {}, {"list"}) == {refs[0]: "a-list"}
    assert skill_ids(refs, {}, {"list", "a-list"}) == {refs[0]: "a-list-2"}


def test_a_number_fits_into_the_length() -> None:
    long = "a" * LONGEST
    assert free(long, {long}) == f"{'a' * (LONGEST - 2)}-2"


texts = st.text(max_size=80)
refs = st.builds(ToolRef, st.sampled_from(["a", "b", "a-b"]), texts)


@given(st.lists(refs, max_size=30), st.sets(texts, max_size=5))
def test_whatever_tools_are_called_each_has_one_valid_id_of_its_own(
    tools: list[ToolRef], taken: set[str]
) -> None:
    ids = skill_ids(tools, {}, taken)
    assert set(ids) == set(tools)
    assert len(set(ids.values())) == len(ids)
    assert not taken & set(ids.values())
    assert all(VALID.fullmatch(id_) and len(id_) <= LONGEST for id_ in ids.values())


@given(st.lists(refs, max_size=20, unique=True))
def test_naming_again_with_one_more_changes_no_id(tools: list[ToolRef]) -> None:
    first = skill_ids(tools[:-1], {}, ())
    again = skill_ids(tools, first, ())
    assert not set(again) & set(first)
    assert not set(again.values()) & set(first.values())
