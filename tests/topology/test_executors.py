"""`executor:`: which harness drives an agent, and what of it cannot be done."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from seriatim.topology import Executor, Harness, HarnessExecutor, ModelExecutor, Problem, load
from seriatim.topology.problems import Severity
from seriatim.topology.resolver import Sound

Write = Callable[[Mapping[str, str]], Path]


def found(
    write: Write, executor: str, more: str = ""
) -> tuple[tuple[Executor, ...], list[Problem]]:
    """Return what drives the root of a topology, if that is sound, and the problems."""
    text = f"agents: {{root: {{id: r, executor: {executor}{more}}}}}\n"
    loaded = load(write({"t.yaml": text}) / "t.yaml")
    problems = list(loaded.problems)
    if not isinstance(loaded, Sound):
        return (), problems
    (topology,) = loaded.workspace.topologies.values()
    return (topology.root.executor,), problems


@pytest.mark.parametrize(
    ("executor", "meant"),
    [
        ("{kind: model, ref: openrouter/x, config: {temperature: 0}}", ModelExecutor()),
        (
            "{kind: harness, ref: codex}",
            HarnessExecutor("codex", Harness.CODEX, ("codex",), ()),
        ),
        (
            "{kind: harness, ref: gemini-cli, config: {arguments: [--model, 2]}}",
            HarnessExecutor("gemini-cli", Harness.GEMINI, ("gemini",), ("--model", "2")),
        ),
        (
            "{kind: harness, ref: claude-code, config: {command: [npx, claude]}}",
            HarnessExecutor("claude-code", Harness.CLAUDE_CODE, ("npx", "claude"), ()),
        ),
        (
            "{kind: harness, config: {command: [./mine, '{task}']}}",
            HarnessExecutor("", Harness.ANY, ("./mine", "{task}"), ()),
        ),
        (
            "{kind: harness, ref: aider, config: {command: [aider]}}",
            HarnessExecutor("aider", Harness.ANY, ("aider",), ()),
        ),
    ],
)
def test_an_executor_means_what_it_says(write: Write, executor: str, meant: Executor) -> None:
    assert found(write, executor) == ((meant,), [])


@pytest.mark.parametrize(
    ("executor", "place", "severity"),
    [
        ("{kind: harnes}", "1:41 schema.enum-mismatch", Severity.ERROR),
        ("{kind: harness, ref: [a]}", "1:55 schema.type-mismatch", Severity.ERROR),
        ("{kind: harness, ref: 3}", "1:55 schema.type-mismatch", Severity.ERROR),
        ("{kind: harness, config: x}", "1:58 schema.type-mismatch", Severity.ERROR),
        ("{kind: harness, config: {command: x}}", "1:68 schema.type-mismatch", Severity.ERROR),
        ("{kind: harness, config: {command: []}}", "1:68 schema.bad-value", Severity.ERROR),
        ("{kind: harness, config: {command: ['']}}", "1:68 schema.bad-value", Severity.ERROR),
        (
            "{kind: harness, ref: codex, config: {arguments: [[a]]}}",
            "1:83 schema.type-mismatch",
            Severity.ERROR,
        ),
        ("{kind: harness}", "1:41 executor.unknown-harness", Severity.WARNING),
        ("{kind: harness, ref: aider}", "1:55 executor.unknown-harness", Severity.WARNING),
        (
            "{kind: harness, ref: codex, config: {allowed_tools: [Bash]}}",
            "1:71 executor.config-ignored",
            Severity.WARNING,
        ),
    ],
)
def test_what_is_wrong_with_an_executor_has_its_place(
    write: Write, executor: str, place: str, severity: Severity
) -> None:
    _, problems = found(write, executor)
    assert [
        (f"{problem.at.line}:{problem.at.column} {problem.code}", problem.severity)
        for problem in problems
    ] == [(place, severity)]


@pytest.mark.parametrize(
    ("executor", "hint"),
    [
        ("{kind: harness, ref: claude}", "did you mean `claude-code`?"),
        ("{kind: harness, ref: codex, config: {comand: [x]}}", "did you mean `command`?"),
    ],
)
def test_what_is_near_is_suggested(write: Write, executor: str, hint: str) -> None:
    _, (problem,) = found(write, executor)
    assert problem.hint == hint


def test_children_of_a_harness_are_a_warning(write: Write) -> None:
    _, (problem,) = found(write, "{kind: harness, ref: codex}", ", children: [{id: c}]")
    assert (problem.code, problem.severity) == ("executor.children-unreached", Severity.WARNING)
    assert (problem.at.line, problem.at.column) == (1, 73)
