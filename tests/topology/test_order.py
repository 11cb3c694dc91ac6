"""Every check of the order rules, with its line and column."""

from collections.abc import Callable

import pytest

from seriatim.topology import Problem, Severity

Check = Callable[[str], list[str]]
Problems = Callable[[str], tuple[Problem, ...]]

HEAD = """\
mcp_servers:
  - id: conventions
    command: [python, server.py]
    permission_overrides: {drop: strict, purge: readonly, scan: readonly}
    effects: {purge: write}
skills:
  - {id: list, server: conventions, tool: list}
  - {id: get, server: conventions, tool: get}
  - {id: search, server: conventions, tool: search}
  - {id: drop, server: conventions, tool: drop}
  - {id: purge, server: conventions, tool: purge}
  - {id: scan, server: conventions, tool: scan}
  - {id: fetch, server: conventions, tool: get}
  - {id: secret, server: conventions, tool: secret, iam: {required_scopes: [vault:read]}}
  - {id: judge, implementation: {type: llm_prompt, prompt: Judge.}}
agents:
  root:
    id: builder
"""
FIRST = HEAD.count("\n") + 1


def agent(*lines: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in lines)


def test_rules_that_can_be_kept_are_no_problem(check: Check) -> None:
    skills = "skills: [list, get, search]"
    assert check(agent(skills, "requires:", "  get: [list]", "  search: [get, list]")) == []


def test_a_prerequisite_that_the_agent_does_not_hold_is_named_with_the_nearest(
    problems_of: Problems,
) -> None:
    (problem,) = problems_of(agent("skills: [list, get]", "requires:", "  get: [lst]"))
    assert problem.code == "agent.requires-unknown-skill"
    assert (problem.at.line, problem.at.column) == (FIRST + 2, 13)
    assert problem.at.pointer == "/agents/root/requires/get/0"
    assert problem.at.text[12:15] == "lst"
    assert problem.hint == "did you mean `list`?"


def test_a_guarded_skill_that_the_agent_does_not_hold_is_an_error(problems_of: Problems) -> None:
    (problem,) = problems_of(agent("skills: [list]", "requires:", "  get: [list]"))
    assert problem.code == "agent.requires-unknown-skill"
    assert (problem.at.line, problem.at.column) == (FIRST + 2, 7)
    assert problem.hint == "add `get` to the agent's skills, or take it out of the rule"


def test_a_cycle_is_shown_as_a_path(problems_of: Problems) -> None:
    rules = ["requires:", "  search: [list]", "  list: [get]", "  get: [search]"]
    (problem,) = problems_of(agent("skills: [list, get, search]", *rules))
    assert problem.code == "agent.requires-cycle"
    assert (problem.at.line, problem.at.column) == (FIRST + 2, 7)
    assert problem.message == (
        "`search -> list -> get -> search` is a cycle; none of them can ever be called"
    )
    assert [(r.message, r.at.line) for r in problem.related] == [
        ("`list` requires `get` here", FIRST + 3),
        ("`get` requires `search` here", FIRST + 4),
    ]


def test_two_cycles_are_two_problems(check: Check) -> None:
    rules = ["requires:", "  list: [get]", "  get: [list, search]", "  search: [get]"]
    assert check(agent("skills: [list, get, search]", *rules)) == [
        f"{FIRST + 2}:7 agent.requires-cycle",
        f"{FIRST + 3}:7 agent.requires-cycle",
    ]


def test_a_skill_that_requires_itself_is_an_error(problems_of: Problems) -> None:
    (problem,) = problems_of(agent("skills: [list]", "requires:", "  list: [list]"))
    assert problem.code == "agent.requires-cycle"
    assert problem.message == "`list` requires itself (`list -> list`); it can never be called"


def test_a_duplicate_rule_is_an_error_that_shows_both(problems_of: Problems) -> None:
    rules = ["requires:", "  get: [list]", "  get: [search]"]
    (problem,) = problems_of(agent("skills: [list, get, search]", *rules))
    assert problem.code == "workspace.duplicate-key"
    assert (problem.at.line, problem.at.column) == (FIRST + 3, 7)
    assert [(r.at.line, r.at.column) for r in problem.related] == [(FIRST + 2, 7)]


def test_an_empty_rule_is_an_error(check: Check) -> None:
    assert check(agent("skills: [list, get]", "requires:", "  get: []")) == [
        f"{FIRST + 2}:12 agent.requires-empty"
    ]


@pytest.mark.parametrize("rules", ["requires:", "requires: {}", "requires: null"])
def test_rules_that_are_not_there_are_an_error(check: Check, rules: str) -> None:
    assert check(agent("skills: [list, get]", rules)) == [f"{FIRST + 1}:5 agent.requires-empty"]


def test_rules_that_are_not_indented_are_an_error(check: Check) -> None:
    rules = ["requires:", "get: [list]"]
    assert f"{FIRST + 1}:5 agent.requires-empty" in check(agent("skills: [list, get]", *rules))


@pytest.mark.parametrize(
    ("rule", "column", "kind"),
    [
        ("get: list", 12, "a string"),
        ("get: 3", 12, "a number"),
        ("get: yes", 12, "a boolean"),
        ("get: {list: true}", 12, "a mapping"),
        ("get:", 7, "empty"),
        ("get: null", 12, "empty"),
        ("get: [[list]]", 13, "a list"),
        ("get: [{list: x}]", 13, "a mapping"),
        ("get: [3]", 13, "a number"),
        ("get: [null]", 13, "nothing"),
        ("3: [list]", 7, "a number"),
        ("yes: [list]", 7, "a boolean"),
    ],
)
def test_a_rule_of_the_wrong_shape_is_an_error(
    problems_of: Problems, rule: str, column: int, kind: str
) -> None:
    (problem,) = problems_of(agent("skills: [list, get]", "requires:", f"  {rule}"))
    assert problem.code == "agent.bad-requires"
    assert (problem.at.line, problem.at.column) == (FIRST + 2, column)
    assert kind in problem.message


@pytest.mark.parametrize("block", ["[list]", "list", "3"])
def test_rules_of_the_wrong_shape_are_an_error(check: Check, block: str) -> None:
    assert check(agent("skills: [list]", f"requires: {block}")) == [
        f"{FIRST + 1}:15 agent.bad-requires"
    ]


def test_a_rule_may_not_guard_a_skill_that_is_no_tool(problems_of: Problems) -> None:
    (problem,) = problems_of(agent("skills: [list, judge]", "requires:", "  judge: [list]"))
    assert problem.code == "agent.requires-not-a-tool"
    assert (problem.at.line, problem.at.column) == (FIRST + 2, 7)
    assert "`llm_prompt`" in problem.message


def test_a_rule_may_not_require_a_skill_that_is_no_tool(check: Check) -> None:
    assert check(agent("skills: [list, judge]", "requires:", "  list: [judge]")) == [
        f"{FIRST + 2}:14 agent.requires-not-a-tool"
    ]


@pytest.mark.parametrize(
    ("denied", "reason"),
    [
        ("drop", "tool drop of server conventions is strict"),
        ("purge", "tool purge of server conventions is readonly"),
        ("secret", "it lacks the scope vault:read"),
    ],
)
def test_a_prerequisite_that_the_agent_may_never_call_is_an_error(
    problems_of: Problems, denied: str, reason: str
) -> None:
    (problem,) = problems_of(agent(f"skills: [{denied}, get]", "requires:", f"  get: [{denied}]"))
    assert problem.code == "agent.requires-denied"
    assert (problem.at.line, problem.at.column) == (FIRST + 2, 13)
    assert reason in problem.message
    assert "`get` can never run" in problem.message


def test_a_denied_prerequisite_names_all_that_wait_for_it(problems_of: Problems) -> None:
    rules = ["requires:", "  search: [get]", "  get: [drop]"]
    (problem,) = problems_of(agent("skills: [drop, get, search]", *rules))
    assert (problem.at.line, problem.at.column) == (FIRST + 3, 13)
    assert "`get`, `search` can never run" in problem.message
    assert [related.at.line for related in problem.related] == [FIRST + 2]


@pytest.mark.parametrize(
    ("skill", "scope"), [("drop", "mcp:call:conventions:drop"), ("secret", "vault:read")]
)
@pytest.mark.parametrize("field", ["base_scope", "elevated_scopes"])
def test_a_scope_lets_a_prerequisite_be_called(
    check: Check, skill: str, scope: str, field: str
) -> None:
    iam = f"iam: {{{field}: ['{scope}']}}"
    assert check(agent(f"skills: [{skill}, get]", iam, "requires:", f"  get: [{skill}]")) == []


def test_a_tool_of_which_only_the_server_knows_whether_it_reads_is_not_denied(
    check: Check,
) -> None:
    assert check(agent("skills: [scan, get]", "requires:", "  get: [scan]")) == []


def test_a_second_skill_on_the_guarded_tool_is_a_way_round(problems_of: Problems) -> None:
    (problem,) = problems_of(agent("skills: [list, get, fetch]", "requires:", "  get: [list]"))
    assert problem.code == "agent.requires-bypass"
    assert (problem.at.line, problem.at.column) == (FIRST + 2, 7)
    assert [(r.at.line, r.at.column) for r in problem.related] == [(FIRST, 25)]


def test_two_guarded_skills_on_one_tool_are_no_problem(check: Check) -> None:
    rules = ["requires:", "  get: [list]", "  fetch: [list]"]
    assert check(agent("skills: [list, get, fetch]", *rules)) == []


def test_fixed_arguments_do_not_close_the_way_round(check: Check) -> None:
    fixed = HEAD.replace("tool: get}", "tool: get, arguments: {kind: a}}", 1)
    rules = "    skills: [list, get, fetch]\n    requires: {get: [list]}\n"
    assert check(fixed + rules) == [f"{FIRST + 1}:16 agent.requires-bypass"]


def test_two_steps_of_one_tool_are_kept_apart_by_their_fixed_arguments(check: Check) -> None:
    head = HEAD.replace(
        "{id: get, server: conventions, tool: get}",
        "{id: get, server: conventions, tool: get, arguments: {step: build}}",
    ).replace(
        "{id: fetch, server: conventions, tool: get}",
        "{id: fetch, server: conventions, tool: get, arguments: {step: prepare}}",
    )
    assert check(head + "    skills: [get, fetch]\n    requires: {get: [fetch]}\n") == []


def test_a_prerequisite_on_the_guarded_tool_itself_is_a_way_round(check: Check) -> None:
    assert check(agent("skills: [get, fetch]", "requires: {get: [fetch]}")) == [
        f"{FIRST + 1}:16 agent.requires-bypass"
    ]


def test_a_requirement_named_twice_is_a_warning(problems_of: Problems) -> None:
    (problem,) = problems_of(agent("skills: [list, get]", "requires:", "  get: [list, list]"))
    assert problem.code == "agent.requires-duplicate"
    assert problem.severity is Severity.WARNING
    assert (problem.at.line, problem.at.column) == (FIRST + 2, 19)


@pytest.mark.parametrize("name", ["require", "Requires", "reqires"])
def test_rules_under_a_misspelt_name_are_an_error(check: Check, name: str) -> None:
    assert check(agent("skills: [list, get]", f"{name}: {{get: [list]}}")) == [
        f"{FIRST + 1}:5 agent.misspelt-requires"
    ]


def test_an_unknown_archetype_brings_no_problems_with_rules_over_what_it_may_grant(
    check: Check,
) -> None:
    assert check(agent("archetype: coder", "requires: {get: [list]}")) == [
        f"{FIRST}:16 agent.unknown-archetype"
    ]


def test_children_inherit_no_rules(check: Check) -> None:
    text = agent(
        "skills: [list, get]",
        "requires: {get: [list]}",
        "children:",
        "  - {id: helper, skills: [get, fetch]}",
    )
    assert check(text) == []


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("tool: list}", "tool: list, requires: {a: [b]}}", "7:49"),
        ("prompt: Judge.}}", "prompt: Judge.}, requires: {a: [b]}}", "15:69"),
        ("agents:\n", "requires: {a: [b]}\nagents:\n", "16:1"),
        ("agents:\n", "agents:\n  requires: {a: [b]}\n", "17:3"),
        ("agents:\n", "archetypes:\n- {id: x, defaults: {requires: {}}}\nagents:\n", "17:22"),
        ("agents:\n", "archetypes:\n- {id: x, requires: {}}\nagents:\n", "17:11"),
    ],
)
def test_rules_anywhere_but_on_an_agent_are_an_error(
    check: Check, old: str, new: str, place: str
) -> None:
    assert check(HEAD.replace(old, new, 1)) == [f"{place} agent.requires-misplaced"]


def test_all_problems_come_at_once_and_in_the_order_of_their_places(check: Check) -> None:
    text = agent(
        "skills: [list, get, nope, fetch]",
        "requires:",
        "  get: [lst, drop]",
        "  list: []",
        "  fetch: list",
        "children:",
        "  - {id: get, archetype: coder}",
    )
    assert check(text) == [
        f"{FIRST}:25 agent.unknown-skill",
        f"{FIRST + 2}:7 agent.requires-bypass",
        f"{FIRST + 2}:13 agent.requires-unknown-skill",
        f"{FIRST + 2}:18 agent.requires-unknown-skill",
        f"{FIRST + 3}:13 agent.requires-empty",
        f"{FIRST + 4}:14 agent.bad-requires",
        f"{FIRST + 6}:14 agent.child-is-skill",
        f"{FIRST + 6}:30 agent.unknown-archetype",
    ]
