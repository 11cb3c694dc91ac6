"""Scripts: how they are read, what is wrong with them, and how they are played."""

from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interceptors import (
    AgentId,
    Missing,
    Refusal,
    SkillId,
    SkillState,
    UnmetPrerequisites,
    Withheld,
    refusal_text,
)
from seriatim.runtime.model.model_loop import Answered, NoAnswer
from seriatim.runtime.model.script import Calls, Retry, Say, ScriptedCall, ScriptError, read_script
from seriatim.runtime.model.scripted import remedy_of, scripted_model
from tests.support.model_runs import play_chosen, reached, workspace_file

pytestmark = pytest.mark.anyio

ANN, BOB = AgentId("ann"), AgentId("bob")
NAMES = st.sampled_from([SkillId(name) for name in ("a", "b-1", "read-first", "then", "again")])


@pytest.fixture
def anyio_backend() -> str:
    """Providers' clients run on asyncio only, and so does the command."""
    return "asyncio"


def script_file(directory: Path, text: str) -> Path:
    file = directory / "script.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_script_is_read(tmp_path: Path) -> None:
    file = script_file(
        tmp_path,
        """
ann:
  - calls:
      - {skill: get, arguments: {name: card, deep: [1, null]}}
      - skill: bob
        arguments: {task: look}
  - retry: true
    arguments: {list: {all: true}}
  - retry: true
  - say: done
  - say: 42
  - say:
bob: []
""",
    )
    assert read_script(file, "script.yaml", [ANN, BOB]) == {
        "ann": (
            Calls(
                (
                    ScriptedCall("get", {"name": "card", "deep": [1, None]}),
                    ScriptedCall("bob", {"task": "look"}),
                )
            ),
            Retry({"list": {"all": True}}),
            Retry({}),
            Say("done"),
            Say("42"),
            Say(""),
        ),
        "bob": (),
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("eve: []", "1:1: the topology has no agent `eve`"),
        ("ann: hello", "1:6: the turns of an agent is a list, not a string"),
        ("ann: [hello]", "1:7: a turn is a mapping, not a string"),
        ("ann: [{}]", "1:7: a turn is empty"),
        ("ann:\n  - says: x", "2:5: a turn has no `says`"),
        (
            "ann:\n  - say: x\n    calls: []",
            "2:5: `calls`, `say` cannot stand together in one turn",
        ),
        ("ann:\n  - say: [x]", "2:10: `say` is a text, not a list"),
        ("ann:\n  - retry: false", "2:12: `retry` is always `true`"),
        ("ann:\n  - calls: {skill: x}", "2:12: `calls` is a list, not a mapping"),
        ("ann:\n  - calls: []", "2:12: `calls` is empty"),
        ("ann:\n  - calls: [x]", "2:13: a call is a mapping, not a string"),
        ("ann:\n  - calls: [{arguments: {}}]", "2:13: a call needs a `skill`"),
        ("ann:\n  - calls: [{skill: x, argument: {}}]", "2:24: a call has no `argument`"),
        (
            "ann:\n  - calls: [{skill: x, arguments: [1]}]",
            "2:35: `arguments` is a mapping, not a list",
        ),
        (
            "ann:\n  - retry: true\n    arguments: {x: 1}",
            "3:20: the arguments of `x` is a mapping, not a number",
        ),
        ("ann: []\nann: []", "2:1: the key `ann` stands here twice"),
    ],
)
def test_what_is_wrong_with_a_script_is_said_with_its_place(
    tmp_path: Path, text: str, problem: str
) -> None:
    with pytest.raises(ScriptError) as raised:
        read_script(script_file(tmp_path, text), "script.yaml", [ANN, BOB])
    assert [f"{p.at.line}:{p.at.column}: {p.message}" for p in raised.value.problems] == [problem]
    assert all(p.at.path == "script.yaml" and p.hint for p in raised.value.problems)


@pytest.mark.parametrize("text", ["ann: [", "- ann", "just text", "ann: \x00"])
def test_what_is_no_mapping_is_a_problem(tmp_path: Path, text: str) -> None:
    with pytest.raises(ScriptError) as raised:
        read_script(script_file(tmp_path, text), "script.yaml", [ANN, BOB])
    assert raised.value.problems


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    text = "eve: []\nann: [{say: [x]}, {calls: [{}, 3]}]"
    with pytest.raises(ScriptError) as raised:
        read_script(script_file(tmp_path, text), "script.yaml", [ANN])
    assert [p.at.line for p in raised.value.problems] == [1, 2, 2, 2]


def test_a_script_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(ScriptError) as raised:
        read_script(tmp_path / "none.yaml", "none.yaml", [ANN])
    [problem] = raised.value.problems
    assert problem.message == "cannot read the file: no such file or directory"


@given(
    missing=st.lists(
        st.builds(
            Missing,
            NAMES,
            st.sampled_from([s for s in SkillState if s is not SkillState.COMPLETED]),
        ),
        min_size=1,
        max_size=3,
    ),
    awaited=st.lists(NAMES, max_size=2).map(tuple),
    remedy=st.lists(st.lists(NAMES, min_size=1, max_size=3).map(tuple), max_size=3).map(tuple),
)
def test_the_remedy_that_is_read_is_the_remedy_that_was_written(
    missing: list[Missing], awaited: tuple[SkillId, ...], remedy: tuple[tuple[SkillId, ...], ...]
) -> None:
    if not (awaited or remedy):
        return
    refusal = UnmetPrerequisites(tuple(missing), awaited, remedy)
    assert remedy_of(refusal_text("guarded", refusal)) == (remedy,)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no",
        "x is not one of your tools. Your tools are a, b.",
        refusal_text("x", Withheld("policy", "Not today. Call a first, then retry.")),
    ],
)
def test_a_text_that_names_no_way_has_no_remedy(text: str) -> None:
    assert remedy_of(text) == ()


def test_no_other_refusal_is_taken_for_one_with_a_remedy() -> None:
    assert len(get_args(Refusal)) == 6, "a new kind of refusal: does a script know what to do?"


RULES = """
agents:
  root:
    id: ann
    role: root
    skills: [list, get, search, fail, echo, forge]
    requires:
      get: [list]
      search: [get, forge]
      echo: [forge]
    children:
      - id: bob
        role: worker
        skills: [list, get]
        requires: {get: [list]}
"""


async def plays(directory: Path, script: str) -> tuple[object, list[tuple[str, str]]]:
    """Return how the run of a script ended, and the skill and the outcome of each row."""
    read = read_script(script_file(directory, script), "script.yaml", [ANN, BOB])
    models = {agent: scripted_model(read, agent) for agent in (ANN, BOB)}
    played = await play_chosen(workspace_file(directory, RULES), models)
    return played.ending, [(row.skill, row.outcome) for row in played.records]


async def test_retry_does_what_the_refusal_says(tmp_path: Path) -> None:
    ending, rows = await plays(
        tmp_path,
        """
ann:
  - calls: [{skill: get, arguments: {name: card}}]
  - retry: true
  - say: done
""",
    )
    assert ending == Answered("done")
    assert rows == [("get", "refused"), ("list", "completed"), ("get", "completed")]


async def test_retry_plays_the_layers_of_all_refusals_and_repeats_them_in_one_turn(
    tmp_path: Path,
) -> None:
    ending, rows = await plays(
        tmp_path,
        """
ann:
  - calls: [{skill: search, arguments: {query: x}}, {skill: echo}]
  - retry: true
    arguments: {forge: {text: forged}, get: {name: card}}
  - say: done
""",
    )
    assert ending == Answered("done")
    assert sorted(rows[:2]) == [("echo", "refused"), ("search", "refused")]
    # A layer is a turn, so only the order within it is open.
    assert sorted(rows[2:4]) == [("forge", "completed"), ("list", "completed")]
    assert rows[4] == ("get", "completed")
    assert sorted(rows[5:]) == [("echo", "completed"), ("search", "completed")]
    assert "search_code" in reached(tmp_path)


async def test_retry_repeats_the_refused_call_with_the_arguments_that_are_given(
    tmp_path: Path,
) -> None:
    text = """
ann:
  - calls: [{skill: echo, arguments: {text: first}}]
  - retry: true
    arguments: {forge: {text: forged}, echo: {text: second}}
  - say: done
"""
    read = read_script(script_file(tmp_path, text), "script.yaml", [ANN, BOB])
    models = {agent: scripted_model(read, agent) for agent in (ANN, BOB)}
    played = await play_chosen(workspace_file(tmp_path, RULES), models)
    inputs = [row.inputs for row in played.records if row.skill == "echo"]
    assert inputs == [{"text": "first"}, {"text": "second"}]


async def test_retry_after_a_result_that_was_not_yet_read_only_repeats(tmp_path: Path) -> None:
    ending, rows = await plays(
        tmp_path,
        """
ann:
  - calls: [{skill: list}, {skill: get}]
  - retry: true
  - say: done
""",
    )
    assert ending == Answered("done")
    assert sorted(rows[:2]) == [("get", "refused"), ("list", "completed")]
    assert rows[2:] == [("get", "completed")]


async def test_each_delegation_goes_on_to_the_next_text_of_the_child(tmp_path: Path) -> None:
    ending, rows = await plays(
        tmp_path,
        """
ann:
  - calls: [{skill: bob, arguments: {task: one}}]
  - calls: [{skill: bob, arguments: {task: two}}]
  - calls: [{skill: bob, arguments: {task: three}}]
  - say: done
bob:
  - calls: [{skill: list}]
  - say: first
  - calls: [{skill: get}]
  - say: second
""",
    )
    assert ending == Answered("done")
    assert rows == [
        ("list", "completed"),
        ("bob", "completed"),
        ("get", "completed"),
        ("bob", "completed"),
        ("bob", "completed"),
    ]


async def test_an_exhausted_script_says_the_empty_text(tmp_path: Path) -> None:
    assert (await plays(tmp_path, "ann: [{calls: [{skill: list}]}]"))[0] == Answered("")


async def test_an_agent_that_is_called_and_has_no_turns_is_an_error(tmp_path: Path) -> None:
    script = "ann: [{calls: [{skill: bob, arguments: {task: x}}]}]"
    assert (await plays(tmp_path, script))[0] == NoAnswer(
        "the model of agent `bob` gave no answer: the script has no turns for agent `bob`"
    )


async def test_an_agent_that_was_not_refused_has_nothing_to_retry(tmp_path: Path) -> None:
    script = "ann: [{calls: [{skill: fail}]}, {retry: true}, {say: done}]"
    ending, _ = await plays(tmp_path, script)
    assert ending == Answered("done")
    assert reached(tmp_path) == ["fail"]
