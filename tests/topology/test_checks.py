"""Every check beside the order rules, with its line and column."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from seriatim.topology import Problem, Severity, load

Check = Callable[[str], list[str]]
Problems = Callable[[str], tuple[Problem, ...]]
Write = Callable[[Mapping[str, str]], Path]

SERVER = "mcp_servers: [{id: s, command: [x]}]\n"
SKILL = "skills: [{id: a, server: s, tool: a}]\n"
ROOT = "agents: {root: {id: r, skills: [a]}}\n"


def test_a_minimal_topology_is_no_problem(check: Check) -> None:
    assert check(SERVER + SKILL + ROOT) == []


@pytest.mark.parametrize(
    ("server", "place"),
    [
        ("{command: [x]}", "1:15 schema.required-field"),
        ("{id: s}", "1:15 schema.required-field"),
        ("{id: s, command: []}", "1:32 schema.required-field"),
        ("{id: s, command: x}", "1:32 schema.type-mismatch"),
        ("{id: s, command: [[x]]}", "1:33 schema.type-mismatch"),
        ("{id: s, transport: http}", "1:15 schema.required-field"),
        ("{id: s, transport: carrier, command: [x]}", "1:34 schema.enum-mismatch"),
        ("{id: s, command: [x], permission: stict}", "1:49 schema.enum-mismatch"),
        (
            "{id: s, command: [x], permission_overrides: {a: stict}}",
            "1:63 schema.enum-mismatch",
        ),
        ("{id: s, command: [x], effects: {a: rite}}", "1:50 schema.enum-mismatch"),
        ("{id: s, command: [x], env: [A]}", "1:42 schema.type-mismatch"),
        ("{id: s, command: [x], cwd: [A]}", "1:42 schema.type-mismatch"),
        ("{id: s, command: [x]}, {id: s, command: [x]}", "1:43 server.duplicate-id"),
        ("3", "1:15 schema.type-mismatch"),
    ],
)
def test_a_server_that_cannot_be_used_is_an_error(check: Check, server: str, place: str) -> None:
    assert check(f"mcp_servers: [{server}]\nagents: {{root: {{id: r}}}}\n") == [place]


@pytest.mark.parametrize(
    ("skill", "place"),
    [
        ("{id: a, tool: a}", "2:10 schema.required-field"),
        ("{id: a, server: s}", "2:10 schema.required-field"),
        ("{id: a, server: s, tool: [x]}", "2:35 schema.type-mismatch"),
        ("{id: a, server: s, tool: a, arguments: [x]}", "2:49 schema.type-mismatch"),
        ("{id: a, server: s, tool: a, arguments: {x: .inf}}", "2:53 schema.bad-value"),
        ("{id: a, server: s, tool: a, constraints: {timeout_seconds: 0}}", "2:69 schema.bad-value"),
        (
            "{id: a, server: s, tool: a, constraints: {timeout_seconds: soon}}",
            "2:69 schema.type-mismatch",
        ),
        ("{id: a, implementation: {server: s, tool: a}}", "2:34 schema.required-field"),
        ("{id: a, server: z, tool: a}", "2:26 skill.unknown-server"),
        ("{id: a, server: s, tool: a}, {id: a, server: s, tool: b}", "2:44 skill.duplicate-id"),
        ("{id: a, server: s, tool: a}, {id: a b, server: s, tool: b}", "2:44 skill.bad-id"),
    ],
)
def test_a_skill_that_cannot_be_used_is_an_error(check: Check, skill: str, place: str) -> None:
    assert check(f"{SERVER}skills: [{skill}]\n{ROOT}") == [place]


@pytest.mark.parametrize(
    ("agent", "place"),
    [
        ("{skills: [a]}", "3:16 schema.required-field"),
        ("{id: a b}", "3:21 agent.bad-id"),
        ("{id: r, skills: a}", "3:32 schema.type-mismatch"),
        ("{id: r, skills: [b]}", "3:33 agent.unknown-skill"),
        ("{id: r, skills: [3]}", "3:33 agent.bad-skill-entry"),
        ("{id: r, skills: [[a]]}", "3:33 agent.bad-skill-entry"),
        ("{id: r, skills: ['server:z']}", "3:33 agent.unknown-bulk-grant"),
        ("{id: r, archetype: x}", "3:35 agent.unknown-archetype"),
        ("{id: r, children: [{id: r}]}", "3:40 agent.duplicate-id"),
        ("{id: r, skills: [a], children: [{id: a}]}", "3:53 agent.child-is-skill"),
        ("{id: r, children: {id: x}}", "3:34 schema.type-mismatch"),
    ],
)
def test_an_agent_that_cannot_be_run_is_an_error(check: Check, agent: str, place: str) -> None:
    assert check(f"{SERVER}{SKILL}agents: {{root: {agent}}}\n") == [place]


@pytest.mark.parametrize(
    ("agents", "place"),
    [
        ("{}", "3:9 schema.required-field"),
        ("{root: [a]}", "3:16 schema.type-mismatch"),
        ("[a]", "3:9 schema.type-mismatch"),
    ],
)
def test_a_topology_without_a_root_is_an_error(check: Check, agents: str, place: str) -> None:
    found = check(f"kind: Topology\n{SERVER}agents: {agents}\n")
    assert found[0] == place


def test_what_is_near_is_suggested(problems_of: Problems) -> None:
    text = "mcp_servers: [{id: store, command: [x]}]\n" + SKILL.replace("s,", "stoer,")
    (problem,) = problems_of(text + ROOT)
    assert problem.hint == "did you mean `store`?"


def test_an_abstract_skill_is_a_warning(problems_of: Problems) -> None:
    root = ROOT.replace("[a]", "[a, {abstract: {category: capability, capability: x}}]")
    (problem,) = problems_of(SERVER + SKILL + root)
    assert (problem.code, problem.severity) == ("agent.abstract-skill", Severity.WARNING)
    assert (problem.at.line, problem.at.column) == (3, 36)


def test_an_unknown_server_of_a_skill_that_nobody_holds_is_a_warning(
    problems_of: Problems,
) -> None:
    skills = "skills: [{id: a, server: s, tool: a}, {id: b, server: z, tool: b}]\n"
    (problem,) = problems_of(SERVER + skills + ROOT)
    assert (problem.code, problem.severity) == ("skill.unknown-server", Severity.WARNING)
    assert (problem.at.line, problem.at.column) == (2, 55)


def test_skills_of_two_files_may_not_share_an_id(write: Write) -> None:
    skill = "kind: Skill\nmetadata: {id: a}\nimplementation: {type: llm_prompt}\n"
    directory = write(
        {"workspace.yaml": "kind: Workspace", "skills/a.yaml": skill, "skills/b.yml": skill}
    )
    codes = {p.code: p for p in load(directory).problems}
    problem = codes["skill.duplicate-id"]
    assert (problem.at.path, problem.at.line, problem.at.column) == ("skills/b.yml", 2, 16)
    assert problem.related[0].at.path == "skills/a.yaml"


def test_topologies_of_two_files_may_not_share_a_name(write: Write) -> None:
    topology = "metadata: {name: t}\nagents: {root: {id: r}}\n"
    files = {"topologies/a.yaml": topology, "topologies/b.yaml": topology}
    (problem,) = load(write({"workspace.yaml": "kind: Workspace", **files})).problems
    assert problem.code == "topology.duplicate-id"
    assert (problem.at.path, problem.at.line, problem.at.column) == ("topologies/b.yaml", 1, 18)


def test_a_file_of_another_kind_is_an_error(write: Write) -> None:
    files = {"workspace.yaml": "kind: Workspace", "skills/a.yaml": "kind: Archetype\n"}
    found = [(p.at.path, p.at.line, p.at.column, p.code) for p in load(write(files)).problems]
    assert ("skills/a.yaml", 1, 7, "workspace.kind-mismatch") in found


def test_an_empty_file_in_a_workspace_is_an_error(write: Write) -> None:
    files = {"workspace.yaml": "kind: Workspace", "topologies/a.yaml": ""}
    (problem,) = load(write(files)).problems
    assert (problem.code, problem.at.path) == ("workspace.malformed", "topologies/a.yaml")
    assert (problem.at.line, problem.at.column) == (1, 1)


def test_a_workspace_without_a_topology_is_a_warning(write: Write) -> None:
    (problem,) = load(write({"workspace.yaml": "kind: Workspace"})).problems
    assert (problem.code, problem.severity) == ("workspace.no-topology", Severity.WARNING)


@pytest.mark.parametrize("name", ["workspace.yaml", "topologies/t.yaml"])
def test_settings_in_a_file_of_swarmkits_are_an_error(write: Write, name: str) -> None:
    files = {
        "workspace.yaml": "kind: Workspace\n",
        "topologies/t.yaml": "agents: {root: {id: r}}\n",
    }
    files[name] += "seriatim: {fail: open}\n"
    (problem,) = load(write(files)).problems
    assert problem.code == "settings.misplaced"
    assert (problem.at.path, problem.at.line, problem.at.column) == (name, 2, 1)


def test_rules_shared_by_an_anchor_are_checked_for_each_agent(problems_of: Problems) -> None:
    skills = "skills: [{id: a, server: s, tool: a}, {id: b, server: s, tool: b}]\n"
    root = "agents: {root: {id: r, skills: [a, b], requires: &rules {b: [a]}, children: ["
    child = "{id: c, skills: [b], requires: *rules}]}}\n"
    (problem,) = problems_of(SERVER + skills + root + child)
    assert problem.message == "agent `c` does not hold the skill `a`"
    assert (problem.at.line, problem.at.column) == (3, 62)


def test_fields_that_do_not_concern_us_are_ignored(check: Check) -> None:
    text = "organisation: {x: [1]}\n" + SERVER + SKILL
    text += "agents: {root: {id: r, skills: [a], funnel: x, depends_on: [y], required: true}}\n"
    assert check(text) == []


def test_every_problem_has_a_hint(problems_of: Problems) -> None:
    text = (
        "agents: {root: {id: r r, skills: [a, 3], requires: {a: [], b: x, c: [c]}, archetype: x}}"
    )
    problems = problems_of(text)
    assert len(problems) > 5
    assert all(problem.hint for problem in problems)
