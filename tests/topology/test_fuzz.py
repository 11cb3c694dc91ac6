"""Whatever bytes stand in a file: a problem that lies in the file, and never an exception."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from seriatim.topology import (
    Broken,
    NothingToValidateError,
    Problem,
    Severity,
    Sound,
    as_json,
    as_text,
    load,
)

GOOD = """\
mcp_servers:
  - {id: s, command: [x], permission: cautious, effects: {a: read}}
skills:
  - {id: a, server: s, tool: a, arguments: {x: 1}, constraints: {timeout_seconds: 3}}
  - id: b
    implementation: {type: mcp_tool, server: s, tool: b}
archetypes:
  - {id: t, defaults: {skills: [a, b], model: {provider: p, name: n}, iam: {base_scope: [q]}}}
agents:
  root:
    id: r
    archetype: t
    requires: {b: [a]}
    children:
      - {id: c, skills: [a], skills_additional: ['server:s'], prompt: {system: x}}
seriatim: {fail: closed, limits: {calls: 3}, redact: [x], interceptors: [{use: x}]}
"""
TOKENS = [
    *sorted(set(re.findall(r"\w+|[^\w\s]|\n *", GOOD))),
    "&x ", "*x", "<<: ", "!!int ", "? ", "- ", "~", "1e999", "\t", "\r", "'", "\u2028", "é", "\x00",
]  # fmt: skip
YAML = st.lists(st.sampled_from(TOKENS), max_size=40).map(" ".join)
VALUES = st.sampled_from(
    ["[]", "{}", "~", "", "3", "-1", ".inf", "yes", "x", "[x]", "[[x]]", "{a: [b]}", "{a: {b: c}}"]
)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Return the good file with words put in the place of others, or parts cut out."""
    words = re.split(r"(\w+|[^\w\s])", GOOD)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(words) - 1))
        words[at : at + draw(st.integers(0, 4))] = [draw(st.sampled_from(TOKENS) | VALUES)]
    return "".join(words)


def assert_sane(content: bytes, name: str, files: dict[str, bytes]) -> None:
    with TemporaryDirectory() as directory:
        for path, text in {**files, name: content}.items():
            file = Path(directory, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text)
        try:
            loaded = load(Path(directory) if files else Path(directory, name))
        except NothingToValidateError:
            return
    match loaded:
        case Sound(problems=problems):
            assert all(problem.severity is Severity.WARNING for problem in problems)
        case Broken(problems):
            assert any(problem.severity is Severity.ERROR for problem in problems)
    assert_in_file(content, [p for p in loaded.problems if p.at.path == name])
    assert as_json(loaded.problems, 1)
    assert as_text(loaded.problems).replace("\n", "").isprintable()


def assert_in_file(content: bytes, problems: list[Problem]) -> None:
    text = content.decode("utf-8-sig", errors="replace")
    lines = re.split("\r\n|[\n\r\x85\u2028\u2029]", text)
    for problem in problems:
        assert problem.hint
        for at in (problem.at, *(related.at for related in problem.related)):
            assert 1 <= at.line <= len(lines)
            assert 1 <= at.column <= len(lines[at.line - 1]) + 1


@given(st.binary(max_size=200))
def test_any_bytes(content: bytes) -> None:
    if not content.startswith((b"\xff\xfe", b"\xfe\xff")):
        assert_sane(content, "t.yaml", {})


@given(st.text(max_size=200) | YAML)
def test_any_text(text: str) -> None:
    assert_sane(text.encode(errors="replace"), "t.yaml", {})


@given(mutated())
def test_a_mutated_topology(text: str) -> None:
    assert_sane(text.encode(), "t.yaml", {})


@given(mutated(), st.sampled_from(["workspace", "seriatim", "skills/a", "archetypes/a"]))
def test_a_mutated_file_of_a_workspace(text: str, name: str) -> None:
    files = {
        "workspace.yaml": b"mcp_servers: [{id: s, command: [x]}]\n",
        "topologies/t.yaml": b"agents: {root: {id: r, archetype: t, skills: [a]}}\n",
    }
    assert_sane(text.encode(), f"{name}.yaml", files)
