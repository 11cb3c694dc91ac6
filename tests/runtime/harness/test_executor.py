"""A harness as executor: its task, its tools, its answer, and its end."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.settings import ModelSettings

from interceptors import AgentId, SkillId
from seriatim.runtime.events import AgentAsked, AgentSaid, CallEnded
from seriatim.runtime.model.model_loop import Answered, CutOff, Driver, NoAnswer
from seriatim.runtime.model.providers import ChosenModel
from seriatim.topology import HarnessExecutor, load_workspace
from tests.support.harnesses import FAKE, KINDS
from tests.support.model_runs import Played, Playing, play_chosen, workspace_file

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

REFUSED = (
    "get requires list, which has not been called in this session. Call list first, then retry."
)


@pytest.fixture
def anyio_backend() -> str:
    """The gateway runs on asyncio alone, for uvicorn's sake."""
    return "asyncio"


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))


def alone(directory: Path, command: Sequence[str], **executor: Any) -> Path:
    """Write a workspace whose only agent is driven by a command."""
    config = {"command": list(command), **executor.pop("config", {})}
    executor = {"kind": "harness", **executor, "config": config}
    agent = {"id": "ann", "skills": ["list", "get"], "requires": {"get": ["list"]}}
    root = json.dumps({**agent, "prompt": "Be brief.", "executor": executor})
    return workspace_file(directory, f"agents: {{root: {root}}}")


async def played(file: Path, *, max_calls: int = 200, **models: Playing) -> Played:
    """Run a workspace: agents with a model by that, all others by their harness."""
    (topology,) = load_workspace(file).topologies.values()
    drivers: dict[AgentId, Driver] = {}
    for id_, agent in topology.agents.items():
        if id_ in models:
            model = FunctionModel(models[id_], model_name=id_)
            drivers[id_] = ChosenModel("test", model, ModelSettings(), frozenset())
        else:
            assert isinstance(agent.executor, HarnessExecutor)
            drivers[id_] = agent.executor
    return await play_chosen(file, drivers, max_calls=max_calls, task="Look it up.")


@pytest.mark.parametrize("ref", KINDS)
async def test_a_harness_gets_the_task_meets_the_gate_and_its_stdout_is_the_answer(
    ref: str, tmp_path: Path
) -> None:
    command = [sys.executable, str(FAKE), KINDS[ref]]
    more = {"arguments": ["--tell", str(tmp_path / "told.json")]}
    done = await played(alone(tmp_path, command, ref=ref, config=more))
    assert isinstance(done.ending, Answered), done.ending
    text = done.ending.text
    assert text.startswith("Be brief.\n\nLook it up.: ")
    assert [(row.via, row.skill, row.outcome) for row in done.records] == [
        ("gateway", "get", "refused"),
        ("gateway", "list", "completed"),
        ("gateway", "get", "completed"),
    ]
    assert done.events[0] == AgentAsked(AgentId("ann"), "Look it up.")
    assert done.events[-1] == AgentSaid(AgentId("ann"), text)
    assert [event.recovered for event in done.events if isinstance(event, CallEnded)] == [
        False,
        False,
        True,
    ]
    told = json.loads((tmp_path / "told.json").read_text(encoding="utf-8"))
    assert told["token"] not in " ".join(told["arguments"])
    assert list((tmp_path / "tmp").iterdir()) == []
    assert (tmp_path / ".seriatim" / "harnesses" / "ann.log").read_text() == "thinking\n"


async def test_a_child_is_handed_its_task_and_its_answer_is_the_result(tmp_path: Path) -> None:
    command = json.dumps([sys.executable, str(FAKE), "any", "--task"])
    agents = f"""
    agents:
      root:
        id: ann
        children:
          - id: bob
            skills: [list, get]
            requires: {{get: [list]}}
            executor: {{kind: harness, config: {{command: {command}}}}}
    """
    ann = Playing([("bob", {"task": "Look."})], "Done.")
    done = await played(workspace_file(tmp_path, agents), ann=ann)
    assert done.ending == Answered("Done.")
    (result,) = ann.texts()
    assert result.startswith("Look.: ")
    assert [(row.agent, row.skill, row.outcome) for row in done.records] == [
        ("bob", "get", "refused"),
        ("bob", "list", "completed"),
        ("bob", "get", "completed"),
        ("ann", "bob", "completed"),
    ]


async def test_the_next_task_begins_anew_as_its_process_does(tmp_path: Path) -> None:
    command = json.dumps([sys.executable, str(FAKE), "any", "--task"])
    agents = f"""
    agents:
      root:
        id: ann
        children:
          - id: bob
            skills: [list, get]
            requires: {{get: [list]}}
            executor: {{kind: harness, config: {{command: {command}}}}}
    """
    ann = Playing([("bob", {"task": "1"})], [("bob", {"task": "2"})], "Done.")
    done = await played(workspace_file(tmp_path, agents), ann=ann)
    outcomes = [row.outcome for row in done.records if row.skill == SkillId("get")]
    assert outcomes == ["refused", "completed", "refused", "completed"]


async def test_the_task_stands_in_the_command_where_that_has_a_place_for_it(
    tmp_path: Path,
) -> None:
    file = alone(tmp_path, ["sh", "-c", 'echo "$1"; wc -c', "sh", "<{task}>"])
    done = await played(file)
    assert done.ending == Answered("<Be brief.\n\nLook it up.>\n0")


async def test_a_harness_that_fails_gives_no_answer_and_says_why_without_the_token(
    tmp_path: Path,
) -> None:
    script = 'echo half; echo "bad $SERIATIM_TOKEN" >&2; exit 3'
    done = await played(alone(tmp_path, ["sh", "-c", script]))
    assert done.ending == NoAnswer(
        "the harness of agent `ann` gave no answer: exited with code 3: bad [redacted]"
    )
    assert (tmp_path / ".seriatim/harnesses/ann.log").read_text() == "bad [redacted]\n"


async def test_a_harness_that_a_signal_ended_gives_no_answer(tmp_path: Path) -> None:
    done = await played(alone(tmp_path, ["sh", "-c", "kill -TERM $$"]))
    assert done.ending == NoAnswer(
        "the harness of agent `ann` gave no answer: was ended by SIGTERM"
    )


async def test_a_harness_that_is_not_there_gives_no_answer(tmp_path: Path) -> None:
    done = await played(alone(tmp_path, ["no-such-command"]))
    assert done.ending == NoAnswer(
        "the harness of agent `ann` gave no answer: cannot be started: no such file or directory"
    )


async def test_what_a_harness_leaves_running_ends_with_it(tmp_path: Path) -> None:
    file = alone(tmp_path, ["sh", "-c", "sleep 1000 & echo $!"])
    with anyio.fail_after(30):
        done = await played(file)
    assert isinstance(done.ending, Answered)
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.ending.text), 0)


async def test_a_harness_ends_when_the_run_is_cancelled(tmp_path: Path) -> None:
    pipe = tmp_path / "pid"
    os.mkfifo(pipe)
    file = alone(tmp_path, ["sh", "-c", f"echo $$ > {pipe}; exec sleep 1000"])
    pid = 0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(played, file)
        pid = int(await anyio.to_thread.run_sync(pipe.read_text))
        tasks.cancel_scope.cancel()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert list((tmp_path / "tmp").iterdir()) == []


async def test_the_calls_of_a_harness_count(tmp_path: Path) -> None:
    command = [sys.executable, str(FAKE), "any", "--task"]
    done = await played(alone(tmp_path, command), max_calls=2)
    assert isinstance(done.ending, CutOff)
    assert [row.rule for row in done.records] == ["requires", None, "limit"]


async def test_a_flood_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seriatim.runtime.harness.process.LARGEST_ANSWER", 1000)
    done = await played(alone(tmp_path, ["sh", "-c", "yes | head -c 1001"]))
    assert done.ending == NoAnswer(
        "the harness of agent `ann` gave no answer: wrote more than 1000 bytes"
    )
