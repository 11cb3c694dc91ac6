"""Real workspaces, found in public: what SwarmKit accepts and is harmless is no error here."""

from pathlib import Path

import pytest

from seriatim.topology import Skill, Sound, load, load_workspace

PUBLIC = Path(__file__).parents[1] / "data" / "swarmkit-workspaces"


def test_the_misspelt_archetype_is_the_only_problem_of_the_broken_one() -> None:
    (problem,) = load(PUBLIC / "hello-swarm-broken").problems
    assert problem.code == "agent.unknown-archetype"
    assert (problem.at.path, problem.at.line, problem.at.column) == (
        "topologies/hello.yaml",
        23,
        20,
    )
    assert problem.hint == "did you mean `greeter`?"


@pytest.mark.parametrize(
    ("name", "topologies", "tools"),
    [
        ("hello-swarm", 1, 1),
        ("reference", 3, 11),
        ("sterling-oms", 8, 69),
        ("sdlc-pipeline", 15, 0),
    ],
)
def test_a_public_workspace_resolves_without_a_problem(
    name: str, topologies: int, tools: int
) -> None:
    loaded = load(PUBLIC / name)
    assert isinstance(loaded, Sound)
    assert loaded.problems == ()
    assert len(loaded.workspace.topologies) == topologies
    held = {skill.id for skill in _held(PUBLIC / name)}
    assert len(held) <= tools


def test_an_agent_of_a_real_size_holds_its_skills() -> None:
    architect = load_workspace(PUBLIC / "sterling-oms").topologies["single-agent-design"].root
    assert len(architect.skills) == 44


def _held(path: Path) -> list[Skill]:
    topologies = load_workspace(path).topologies.values()
    return [
        s for topology in topologies for agent in topology.agents.values() for s in agent.skills
    ]
