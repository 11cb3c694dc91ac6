"""What a workspace resolves to: inheritance, defaults, and both layouts."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from interceptors import AgentId, SkillId, Tier, ToolRef
from seriatim.topology import (
    Broken,
    Effect,
    Harness,
    HarnessExecutor,
    HttpTransport,
    ModelExecutor,
    NothingToValidateError,
    Sound,
    StdioTransport,
    TopologyProblemsError,
    Workspace,
    load,
    load_workspace,
)

Write = Callable[[Mapping[str, str]], Path]
WorkspaceOf = Callable[[str], Workspace]

INLINE = """\
mcp_servers:
  - {id: conventions, command: [python, server.py]}
  - {id: other, endpoint: "https://example.com/${PART}", headers: {Authorization: "${TOKEN}"}}
skills:
  - {id: list, server: conventions, tool: list_all, description: Lists them.}
  - {id: get, server: conventions, tool: get_one, arguments: {kind: a}}
  - {id: search, server: other, tool: search}
  - {id: judge, implementation: {type: llm_prompt, prompt: Judge.}}
archetypes:
  - id: coder
    description: Writes code.
    executor: {kind: harness, ref: claude-code}
    skills: [list, get, judge]
    model: {provider: anthropic, name: some-model, temperature: 0.5}
    prompt: {system: You write code., persona: You are kind.}
    iam: {base_scope: [a], elevated_scopes: [b]}
"""

SKILL = """\
apiVersion: swarmkit/v1
kind: Skill
metadata: {id: list, name: List, description: Lists all conventions.}
category: capability
implementation: {type: mcp_tool, server: conventions, tool: list_all, arguments: {kind: a}}
iam: {required_scopes: [read]}
constraints: {timeout_seconds: 2.5}
audit: {redact: [iban]}
provenance: {authored_by: human, version: 1.0.0}
"""

DIRECTORY = {
    "workspace.yaml": """\
        apiVersion: swarmkit/v1
        kind: Workspace
        metadata: {id: demo, name: Demo}
        mcp_servers:
          - id: conventions
            transport: stdio
            command: [python, server.py]
            env: {PORT: 8080, KEY: "${KEY}"}
            cwd: servers
            permission: strict
            permission_overrides: {list_all: open}
            effects: {list_all: read}
        """,
    "skills/list.yaml": SKILL,
    "archetypes/coder.yaml": """\
        kind: Archetype
        metadata: {id: coder, name: Coder, description: Writes code.}
        defaults: {skills: [list]}
        """,
    "topologies/deep/build.yaml": """\
        kind: Topology
        metadata: {name: build, version: 0.1.0}
        agents: {root: {id: builder, role: root, archetype: coder}}
        """,
    "seriatim.yaml": "limits: {calls: 7}\n",
    "funnels/other.yaml": "[not, ours",
}


def agents(workspace: Workspace) -> dict[str, tuple[str, ...]]:
    (topology,) = workspace.topologies.values()
    return {agent.id: tuple(s.id for s in agent.skills) for agent in topology.agents.values()}


def test_a_directory_in_swarmkits_layout_resolves(write: Write) -> None:
    directory = write(DIRECTORY)
    workspace = load_workspace(directory)
    assert (workspace.id, workspace.directory) == ("demo", directory)
    assert workspace.settings.max_calls == 7
    root = workspace.topologies["build"].root
    (skill,) = root.skills
    assert skill.tool == ToolRef("conventions", "list_all")
    assert (skill.timeout, skill.description) == (2.5, "Lists all conventions.")
    assert skill.required_scopes == {"read"}
    assert skill.redact == {"iban"}
    assert skill.fixed == {"kind": "a"}
    server = workspace.servers["conventions"]
    env = {"PORT": "8080", "KEY": "${KEY}"}
    where = str(directory / "servers")
    assert server.transport == StdioTransport(("python", "server.py"), env, where)
    assert (server.tier, server.tool_tiers) == (Tier.STRICT, {"list_all": Tier.OPEN})
    assert server.effects == {"list_all": Effect.READ}


def test_one_file_resolves(write: Write) -> None:
    directory = write({"build.yaml": INLINE + "agents: {root: {id: root, skills: [list, get]}}\n"})
    workspace = load_workspace(directory / "build.yaml")
    assert (workspace.id, workspace.directory) == ("build", directory)
    assert list(workspace.topologies) == ["build"]
    assert agents(workspace) == {"root": ("list", "get")}
    get = workspace.topologies["build"].root.skills[1]
    assert (get.tool, get.fixed, get.timeout) == (
        ToolRef("conventions", "get_one"),
        {"kind": "a"},
        60,
    )
    conventions, other = (workspace.servers[name].transport for name in ("conventions", "other"))
    assert conventions == StdioTransport(("python", "server.py"), {}, str(directory))
    assert other == HttpTransport("https://example.com/${PART}", {"Authorization": "${TOKEN}"})


def test_a_directory_named_by_a_variable_is_left_for_when_it_is_known(
    workspace_of: WorkspaceOf,
) -> None:
    text = INLINE.replace("server.py]}", "server.py], cwd: '${HOME}/x'}")
    workspace = workspace_of(text + "agents: {root: {id: root}}\n")
    transport = workspace.servers["conventions"].transport
    assert isinstance(transport, StdioTransport)
    assert transport.cwd == "${HOME}/x"


def test_an_agent_inherits_all_that_it_does_not_say(workspace_of: WorkspaceOf) -> None:
    text = INLINE + "agents: {root: {id: root, archetype: coder, requires: {get: [list]}}}\n"
    (topology,) = workspace_of(text).topologies.values()
    root = topology.root
    assert [skill.id for skill in root.skills] == ["list", "get"]
    assert root.requires == {"get": ("list",)}
    assert root.scopes == {"a", "b"}
    assert root.description == "Writes code."
    assert root.executor == HarnessExecutor("claude-code", Harness.CLAUDE_CODE, ("claude",), ())
    assert root.prompt == "You are kind.\n\nYou write code."
    (model,) = root.models
    assert (model.provider, model.name, model.temperature) == ("anthropic", "some-model", 0.5)


def test_what_an_agent_says_goes_before_its_archetype(workspace_of: WorkspaceOf) -> None:
    text = """\
agents:
  root:
    id: root
    archetype: coder
    description: Builds.
    executor: {kind: model}
    prompt: {system: You build.}
    model: {temperature: 0, max_tokens: 10}
    iam: {base_scope: [c]}
"""
    (topology,) = workspace_of(INLINE + text).topologies.values()
    root = topology.root
    assert (root.description, root.executor) == ("Builds.", ModelExecutor())
    assert root.prompt == "You are kind.\n\nYou build."
    (model,) = root.models
    assert (model.name, model.temperature, model.max_tokens) == ("some-model", 0, 10)
    assert root.scopes == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("fields", "skills"),
    [
        ("archetype: coder", ("list", "get")),
        ("archetype: coder, skills: [search]", ("search",)),
        ("archetype: coder, skills: []", ()),
        ("archetype: coder, skills_additional: [search]", ("list", "get", "search")),
        ("archetype: coder, skills: [get], skills_additional: [list, get]", ("get", "list")),
        ("skills: [get, get, list]", ("get", "list")),
        ("skills: ['server:conventions']", ("list", "get")),
        ("skills: [get, 'server:conventions', 'pack:git']", ("get", "list")),
        ("skills: [judge]", ()),
    ],
)
def test_skills_replace_and_additional_skills_append(
    workspace_of: WorkspaceOf, fields: str, skills: tuple[str, ...]
) -> None:
    text = INLINE + f"agents: {{root: {{id: root, {fields}}}}}\n"
    assert agents(workspace_of(text)) == {"root": skills}


def test_children_are_agents_of_their_own(workspace_of: WorkspaceOf) -> None:
    text = """\
agents:
  root:
    id: root
    children:
      - id: lead
        role: leader
        skills: [list]
        children: [{id: worker, skills: [get]}]
      - {id: other, archetype: coder}
"""
    workspace = workspace_of(INLINE + text)
    assert agents(workspace) == {
        "root": (),
        "lead": ("list",),
        "worker": ("get",),
        "other": ("list", "get"),
    }
    (topology,) = workspace.topologies.values()
    roles = [agent.role for agent in topology.agents.values()]
    assert roles == ["root", "leader", "worker", "worker"]
    assert [child.id for child in topology.root.children] == ["lead", "other"]
    assert topology.agents[AgentId("lead")].children[0].id == "worker"


def test_rules_keep_the_order_in_which_they_are_written(workspace_of: WorkspaceOf) -> None:
    rules = "{search: [list, get], get: [list]}"
    skills = "[get, list, search]"
    text = INLINE + f"agents: {{root: {{id: root, skills: {skills}, requires: {rules}}}}}\n"
    (topology,) = workspace_of(text).topologies.values()
    assert list(topology.root.requires.items()) == [
        (SkillId("search"), ("list", "get")),
        (SkillId("get"), ("list",)),
    ]


def test_a_workspace_with_warnings_is_sound(write: Write) -> None:
    files = {**DIRECTORY, "skills/list.yaml": SKILL.replace("2.5}", "2.5, retry: {attempts: 3}}")}
    loaded = load(write(files))
    assert isinstance(loaded, Sound)
    assert [(p.code, p.at.line, p.at.column) for p in loaded.problems] == [
        ("skill.retry-ignored", 7, 37)
    ]
    assert loaded.files == 5


def test_skills_that_differ_only_in_capital_letters_are_a_warning(write: Write) -> None:
    skills = "skills: [{id: get, server: s, tool: a}, {id: Get, server: s, tool: b}]\n"
    servers = "mcp_servers: [{id: s, command: [x]}]\n"
    text = "agents: {root: {id: r, skills: [get, Get, get, Get]}}\n"
    loaded = load(write({"topology.yaml": servers + skills + text}) / "topology.yaml")
    assert isinstance(loaded, Sound)
    assert [(p.code, p.at.line, p.at.column, p.message) for p in loaded.problems] == [
        ("agent.like-skills", 3, 38, "`Get` and `get` differ only in capital letters")
    ]


def test_a_workspace_with_errors_raises_all_of_them(write: Write) -> None:
    files = {**DIRECTORY, "seriatim.yaml": "fial: open\n"}
    with pytest.raises(TopologyProblemsError, match=r"^seriatim.yaml:1:1: settings.unknown-key"):
        load_workspace(write(files))


def test_one_broken_file_does_not_keep_the_others_from_being_checked(write: Write) -> None:
    files = {
        **DIRECTORY,
        "skills/list.yaml": "a: [",
        "topologies/other.yaml": "agents: {root: {id: a, skills: [list], archetype: cod}}\n",
    }
    loaded = load(write(files))
    assert isinstance(loaded, Broken)
    assert [(p.at.path, p.code) for p in loaded.problems] == [
        ("skills/list.yaml", "workspace.yaml-parse"),
        ("topologies/other.yaml", "agent.unknown-archetype"),
    ]


@pytest.mark.parametrize("broken", ["workspace.yaml", "archetypes/coder.yaml"])
def test_a_broken_file_brings_no_problems_where_it_is_referred_to(
    write: Write, broken: str
) -> None:
    loaded = load(write({**DIRECTORY, broken: "a: ["}))
    assert [(p.at.path, p.code) for p in loaded.problems] == [(broken, "workspace.yaml-parse")]


def test_what_is_not_there_is_no_workspace(tmp_path: Path) -> None:
    with pytest.raises(NothingToValidateError, match="there is no file or directory"):
        load(tmp_path / "missing")


def test_a_directory_without_a_manifest_is_no_workspace(tmp_path: Path) -> None:
    with pytest.raises(NothingToValidateError, match=r"holds no `workspace.yaml`"):
        load(tmp_path)


@pytest.mark.parametrize("text", ["", "# nothing\n", "a: 1\n", "kind: Workspace\n"])
def test_a_file_without_agents_is_no_workspace(write: Write, text: str) -> None:
    with pytest.raises(NothingToValidateError, match="holds no topology"):
        load(write({"t.yaml": text}) / "t.yaml")


def test_a_part_of_a_workspace_is_not_validated_alone(write: Write) -> None:
    directory = write(DIRECTORY)
    (directory / "topologies/build.yaml").write_text("agents: {root: {id: a}}\n")
    with pytest.raises(NothingToValidateError, match="only a part") as caught:
        load(directory / "topologies/build.yaml")
    assert str(directory) in caught.value.hint
