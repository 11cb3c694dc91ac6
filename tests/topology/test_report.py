import json

from seriatim.topology import Location, Part, Problem, Related, Severity, as_json, as_text, summary


def problem(
    text: str, column: int, width: int, severity: Severity = Severity.ERROR, *related: Related
) -> Problem:
    at = Location("topology.yaml", 14, column, "/agents", text, width)
    return Problem("agent.requires-cycle", severity, "it goes round", at, "stop it", related)


def test_a_problem_shows_the_offending_text_under_a_caret() -> None:
    other = Related("`b` requires `a` here", Location("topology.yaml", 15, 7, "", "", 1))
    assert (
        as_text([problem("      a: [b]", 7, 1, Severity.ERROR, other)])
        == """\
topology.yaml:14:7: agent.requires-cycle: it goes round
  14 |       a: [b]
     |       ^
  topology.yaml:15:7: `b` requires `a` here

hint: stop it"""
    )


def test_a_warning_says_that_it_is_one() -> None:
    first = as_text([problem("a", 1, 1, Severity.WARNING)]).splitlines()[0]
    assert first == "topology.yaml:14:1: agent.requires-cycle (warning): it goes round"


def carets(text: str, column: int, width: int) -> tuple[str, str]:
    _, line, under, *_ = as_text([problem(text, column, width)]).splitlines()
    return line[7:], under[7:]


def test_carets_stand_under_wide_and_combining_characters() -> None:
    assert carets("日本: x", 5, 1) == ("日本: x", "      ^")
    assert carets("e\u0301: x", 5, 1) == ("e\u0301: x", "   ^")
    assert carets("日本", 1, 2) == ("日本", "^^^^")


def test_a_tab_takes_one_column() -> None:
    assert carets("\t- x", 4, 1) == (" - x", "   ^")


def test_a_long_line_is_shown_around_the_place() -> None:
    line, under = carets("x" * 500 + "here" + "y" * 500, 501, 4)
    assert len(line) == 120
    start = under.index("^")
    assert line[start : start + 4] == "here"
    assert under.endswith("^^^^")


def test_carets_end_where_the_shown_line_does() -> None:
    line, under = carets("x" * 500, 1, 500)
    assert len(line) == len(under) == 120


def test_a_file_cannot_move_the_cursor() -> None:
    text = as_text([problem("a\x1b[31m\u202eb", 1, 1)])
    assert text.replace("\n", "").isprintable()


def test_a_painter_is_given_each_part() -> None:
    parts: list[Part] = []

    def paint(part: Part, text: str) -> str:
        parts.append(part)
        return text

    as_text([problem("a", 1, 1)], paint)
    assert set(parts) == {Part.ERROR, Part.PLACE, Part.MARGIN, Part.HINT}


def test_json_holds_the_same_data() -> None:
    assert json.loads(as_json([problem("a", 3, 1)], 5)) == {
        "problems": [
            {
                "code": "agent.requires-cycle",
                "severity": "error",
                "message": "it goes round",
                "path": "topology.yaml",
                "line": 14,
                "column": 3,
                "pointer": "/agents",
                "hint": "stop it",
            }
        ],
        "summary": {"errors": 1, "warnings": 0, "files": 5},
    }


def test_the_summary_counts() -> None:
    problems = [problem("a", 1, 1), problem("a", 1, 1, Severity.WARNING)] * 2
    assert summary(problems, 1) == "2 errors, 2 warnings in 1 file"
