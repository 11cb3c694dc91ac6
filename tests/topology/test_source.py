"""Files as YAML: places, and every way in which a file can be no YAML."""

from pathlib import Path

import pytest

from seriatim.topology.nodes import ListNode, MapNode, ScalarNode
from seriatim.topology.source import parse, read


def problem_of(text: str | bytes) -> tuple[str, int, int]:
    content = text.encode() if isinstance(text, str) else text
    document = parse(content, "t.yaml")
    (problem,) = document.problems
    assert problem.hint
    return problem.code, problem.at.line, problem.at.column


def test_every_node_knows_its_place() -> None:
    root = parse(b"a:\n  - {b: 1}\n  - c/d~: [x]\n", "t.yaml").root
    items = root.entries["a"].value
    assert isinstance(items, ListNode)
    second = items.items[1]
    assert isinstance(second, MapNode)
    entry = second.entries["c/d~"]
    assert isinstance(entry.value, ListNode)
    at = entry.value.items[0].at
    assert (at.line, at.column, at.width, at.pointer) == (3, 12, 1, "/a/1/c~1d~0/0")
    assert at.text == "  - c/d~: [x]"


def test_columns_count_characters() -> None:
    at = parse("ä𝄞: ö, ü".encode(), "t.yaml").root.entries["ä𝄞"].value.at
    assert (at.column, at.width) == (5, 4)


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_lines_count_whatever_ends_them(line_end: str) -> None:
    content = f"a: 1{line_end}b: 2{line_end}".encode()
    at = parse(content, "t.yaml").root.entries["b"].key.at
    assert (at.line, at.column, at.text) == (2, 1, "b: 2")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_takes_no_column(encoding: str) -> None:
    document = parse("a: 1".encode(encoding), "t.yaml")
    assert document.problems == ()
    assert document.root.entries["a"].key.at.column == 1


def test_an_absent_value_stands_where_its_key_does() -> None:
    at = parse(b"a: 1\nb:\n\n\nc: 2", "t.yaml").root.entries["b"].value.at
    assert (at.line, at.column) == (2, 1)


def test_an_alias_stands_where_its_anchor_does() -> None:
    root = parse(b"a: &x [1]\nb: *x\n", "t.yaml").root
    assert root.entries["a"].value is root.entries["b"].value


def test_a_merged_key_gives_way_to_one_that_is_written() -> None:
    text = b"a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nc: {<<: [*a, *b], x: 5}\nd: {<<: *a}\n"
    document = parse(text, "t.yaml")
    assert document.problems == ()
    merged = document.root.entries["c"].value
    assert isinstance(merged, MapNode)
    values = {
        name: entry.value.value
        for name, entry in merged.entries.items()
        if isinstance(entry.value, ScalarNode)
    }
    assert values == {"x": 5, "y": 2, "z": 4}


def test_a_duplicate_key_shows_both_places() -> None:
    document = parse(b"a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n", "t.yaml")
    (problem,) = document.problems
    assert (problem.code, problem.at.line, problem.at.column) == ("workspace.duplicate-key", 5, 3)
    assert problem.at.pointer == "/b/c"
    assert [(r.at.line, r.at.column) for r in problem.related] == [(3, 3)]


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a: 1\nb: [\n", 3, 1),
        ("a: 'x", 1, 6),
        ("\ta: 1", 1, 1),
        ("a:\n\t- b", 2, 1),
        ("key: [1, 2]: 3", 1, 12),
        ("a: *b", 1, 4),
        ("a: 1\n---\nb: 2\n", 2, 1),
        ("a: &x [*x]", 1, 4),
        ("a: 1\n? [b]\n: c", 2, 3),
        ("a: 1\nb: !!int x", 2, 4),
        ("a: {<<: 3}", 1, 4),
        ("%YAML 9.9\n--- a", 1, 1),
        ("a: 1\nb: \x07", 2, 4),
        (b"a: 1\nb: \xff", 2, 4),
        (b"\x00\x01\x02", 1, 1),
        (b"\xff\xfea", 1, 1),
    ],
)
def test_bad_yaml_is_a_problem_with_its_place(text: str | bytes, line: int, column: int) -> None:
    assert problem_of(text) == ("workspace.yaml-parse", line, column)


def test_a_tab_is_named_as_the_culprit() -> None:
    (problem,) = parse(b"a:\n\t- b", "t.yaml").problems
    assert "spaces" in problem.hint


@pytest.mark.parametrize("text", ["[" * 5_000, "- " * 5_000, "a: " + "[" * 500 + "]" * 500])
def test_nesting_beyond_measure_is_a_problem(text: str) -> None:
    code, line, _ = problem_of(text)
    assert code in {"workspace.yaml-parse", "workspace.deep-nesting"}
    assert line == 1


def test_aliases_that_multiply_are_a_problem() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    code, line, _ = problem_of("\n".join(lines))
    assert (code, line) == ("workspace.yaml-parse", 6)


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "---\n", "~"])
def test_a_file_that_says_nothing_is_blank(text: str) -> None:
    document = parse(text.encode(), "t.yaml")
    assert document.blank
    assert document.problems == ()


@pytest.mark.parametrize("text", ["a", "[a]", "3"])
def test_a_file_that_holds_no_mapping_is_a_problem(text: str) -> None:
    assert problem_of(text) == ("workspace.malformed", 1, 1)


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    (problem,) = read(tmp_path / "missing.yaml", "missing.yaml").problems
    assert (problem.code, problem.at.path) == ("workspace.unreadable", "missing.yaml")
