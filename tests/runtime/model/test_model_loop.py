"""The model loop, on a real server: turns, recovery, children, the cap, what the model sees."""

from pathlib import Path

import anyio
import pytest
from pydantic_ai.messages import ModelMessage, ModelRequest, SystemPromptPart, UserPromptPart
from pydantic_ai.settings import ModelSettings

from interceptors import AgentId, MemoryAuditSink, Refused
from seriatim.runtime.events import CallEnded, Count, Tally
from seriatim.runtime.model.model_loop import Answered, CutOff, NoAnswer
from tests.support.model_runs import Playing, play, reached, workspace_file

pytestmark = pytest.mark.anyio

GUARDED = """
agents:
  root:
    id: ann
    role: root
    prompt: {system: Be brief.}
    skills: [list, get, search, fail, slow, echo]
    requires:
      get: [list]
"""
FAMILY = """
agents:
  root:
    id: ann
    role: root
    skills: [list, get]
    requires: {get: [list]}
    children:
      - id: bob
        role: worker
        description: Knows the code.
        skills: [list, get, slow]
        requires: {get: [list]}
      - id: cid
        role: worker
        skills: [slow]
"""
REFUSAL = (
    "get requires list, which has not been called in this session. Call list first, then retry."
)


@pytest.fixture
def anyio_backend() -> str:
    """Providers' clients run on asyncio only, and so does the command."""
    return "asyncio"


async def test_the_agent_recovers_within_one_loop(tmp_path: Path) -> None:
    ann = Playing([("get", {})], [("list", {})], [("get", {})], "done")
    played = await play(workspace_file(tmp_path, GUARDED), {"ann": ann})
    assert played.ending == Answered("done")
    assert [ann.texts(i) for i in (1, 2, 3)] == [
        [REFUSAL],
        ["console, card"],
        ["Log lines start with a capital."],
    ]
    assert [part.outcome for i in (1, 2, 3) for part in ann.results(i)] == [
        "failed",
        "success",
        "success",
    ]
    assert reached(tmp_path) == ["list_conventions", "get_convention"]
    assert [(row.skill, row.policy_decision, row.reason) for row in played.records] == [
        ("get", "deny", REFUSAL),
        ("list", "allow", None),
        ("get", "allow", None),
    ]
    assert [event.recovered for event in played.events if isinstance(event, CallEnded)] == [
        False,
        False,
        True,
    ]


async def test_a_tool_that_asks_fails_where_nobody_can_answer(tmp_path: Path) -> None:
    ann = Playing([("ask", {})], [("get", {})], "done")
    asking = "agents: {root: {id: ann, role: root, skills: [ask, get], requires: {get: [ask]}}}"
    played = await play(workspace_file(tmp_path, asking), {"ann": ann})
    assert ann.texts(1) == [
        "ask was not run: it asks for input first, which only a client can give."
    ]
    assert [part.outcome for part in ann.results(1)] == ["failed"]
    assert ann.texts(2) == [
        "get requires ask, which was called but did not succeed in this session. "
        "Call ask again, then retry."
    ]
    assert [(row.outcome, row.error_kind) for row in played.records] == [
        ("failed", "input_required"),
        ("refused", None),
    ]


async def test_the_calls_of_one_response_are_one_turn(tmp_path: Path) -> None:
    ann = Playing([("list", {}), ("get", {})], [("get", {})], "done")
    await play(workspace_file(tmp_path, GUARDED), {"ann": ann})
    assert ann.texts(1) == [
        "console, card",
        "get requires list, which was called but whose result had not been returned when get was "
        "called. Read the result of list, then retry.",
    ]
    assert ann.texts(2) == ["Log lines start with a capital."]


async def test_the_model_is_sent_its_prompt_the_task_and_its_settings(tmp_path: Path) -> None:
    ann = Playing("hello")
    settings = ModelSettings(temperature=0.5, max_tokens=7)
    await play(workspace_file(tmp_path, GUARDED), {"ann": ann}, task="find", settings=settings)
    parts = [part for message in ann.seen[0] for part in message.parts]
    assert [(type(part), getattr(part, "content", "")) for part in parts] == [
        (SystemPromptPart, "Be brief."),
        (UserPromptPart, "find"),
    ]
    assert ann.infos[0].model_settings == settings


async def test_the_model_sees_each_skill_under_its_id_as_the_server_describes_it(
    tmp_path: Path,
) -> None:
    ann = Playing("hello")
    await play(workspace_file(tmp_path, GUARDED), {"ann": ann})
    tools = ann.infos[0].function_tools
    assert [tool.name for tool in tools] == ["list", "get", "search", "fail", "slow", "echo"]
    assert tools[1].description == "Gets one build convention."
    assert tools[1].parameters_json_schema["properties"] == {"name": {"type": "string"}}


async def test_beyond_the_cap_a_call_is_refused_and_the_agent_ends_without_tools(
    tmp_path: Path,
) -> None:
    ann = Playing([("list", {})], [("list", {}), ("get", {})], "that was all")
    played = await play(workspace_file(tmp_path, GUARDED), {"ann": ann}, max_calls=2)
    assert played.ending == CutOff("that was all", 2)
    assert ann.texts(2) == [
        "console, card",
        "get was not run: this run has used its 2 calls. Finish without tools.",
    ]
    assert [info.model_settings for info in ann.infos] == [{}, {}, {"tool_choice": "none"}]
    assert sorted((row.skill, row.rule or "") for row in played.records) == [
        ("get", "limit"),
        ("list", ""),
        ("list", ""),
    ]


async def test_an_agent_that_never_stops_is_cut_off_and_all_its_calls_are_on_the_record(
    tmp_path: Path,
) -> None:
    ann = Playing([("get", {})])
    played = await play(workspace_file(tmp_path, GUARDED), {"ann": ann}, max_calls=5)
    assert played.ending == CutOff("", 5)
    assert [row.rule for row in played.records] == ["requires"] * 5 + ["limit"] * 2
    assert len(ann.seen) == 7


async def test_agents_that_only_delegate_are_cut_off_too(tmp_path: Path) -> None:
    ann, bob = Playing([("bob", {"task": "talk"})]), Playing("well")
    models = {"ann": ann, "bob": bob, "cid": Playing("")}
    played = await play(workspace_file(tmp_path, FAMILY), models, max_calls=3)
    assert played.ending == CutOff("", 3)
    assert len(bob.seen) == 3
    assert {row.event_type for row in played.records} == {"agent.delegated"}
    assert played.records[-1].rule == "limit"
    tally = Tally()
    for event in played.events:
        tally(event)
    assert tally.agents[AgentId("ann")] == Count(calls=0, delegations=5, refusals=2, recoveries=0)


async def test_a_child_has_its_own_scope_and_a_conversation_that_lives_on(tmp_path: Path) -> None:
    ann = Playing(
        [("list", {})],
        [("bob", {"task": "first"})],
        [("bob", {"task": "second"})],
        "done",
    )
    bob = Playing([("get", {})], [("list", {})], "seen", [("get", {})], "got it")
    models = {"ann": ann, "bob": bob, "cid": Playing("")}
    played = await play(workspace_file(tmp_path, FAMILY), models)
    assert played.ending == Answered("done")
    # What the parent has called satisfies nothing here, and what the child has, stays.
    assert bob.texts(1) == [REFUSAL]
    assert bob.texts(4) == ["Log lines start with a capital."]
    prompts = [
        part.content
        for message in bob.seen[-1]
        for part in message.parts
        if isinstance(part, UserPromptPart)
    ]
    assert prompts == ["first", "second"]
    assert (ann.texts(2), ann.texts(3)) == (["seen"], ["got it"])
    rows = [(row.event_type, row.agent, row.skill, row.output) for row in played.records]
    assert rows == [
        ("skill.executed", "ann", "list", "console, card"),
        ("skill.executed", "bob", "get", None),
        ("skill.executed", "bob", "list", "console, card"),
        ("agent.delegated", "ann", "bob", "seen"),
        ("skill.executed", "bob", "get", "Log lines start with a capital."),
        ("agent.delegated", "ann", "bob", "got it"),
    ]
    row = played.records[3]
    assert (row.server, row.tool, row.inputs, row.via) == (None, None, {"task": "first"}, "model")


async def test_the_parent_sees_its_children_as_tools_with_one_argument(tmp_path: Path) -> None:
    ann = Playing("hello")
    await play(workspace_file(tmp_path, FAMILY), {"ann": ann, "bob": ann, "cid": ann})
    [bob, cid] = ann.infos[0].function_tools[2:]
    assert (bob.name, bob.description) == ("bob", "Knows the code.")
    assert bob.parameters_json_schema["required"] == ["task"]
    assert cid.description == "Hands a task to the agent cid."


async def test_a_mixed_turn_runs_side_by_side_and_keeps_the_order_of_its_results(
    tmp_path: Path,
) -> None:
    opened = tmp_path / "opened"

    def open_then_answer(_messages: list[ModelMessage]) -> str:
        # Ends the call that runs beside this child, which would else take a minute.
        opened.touch()
        return "opened"

    ann = Playing(
        [("cid", {"task": "wait"}), ("list", {}), ("bob", {"task": "open"}), ("get", {})], "done"
    )
    cid = Playing([("slow", {"until": str(opened)})], "waited")
    models = {"ann": ann, "bob": Playing(open_then_answer), "cid": cid}
    with anyio.fail_after(30):
        await play(workspace_file(tmp_path, FAMILY), models)
    assert ann.texts()[:3] == ["waited", "console, card", "opened"]
    assert ann.texts()[3].endswith("Read the result of list, then retry.")


async def test_tasks_for_one_child_queue_in_their_order(tmp_path: Path) -> None:
    ann = Playing([("bob", {"task": str(i)}) for i in range(5)], "done")
    answered: list[str] = []

    def answer(messages: list[ModelMessage]) -> str:
        last = messages[-1]
        assert isinstance(last, ModelRequest)
        [prompt] = last.parts
        answered.append(str(prompt.content))
        return f"did {prompt.content}"

    models = {"ann": ann, "bob": Playing(answer), "cid": Playing("")}
    await play(workspace_file(tmp_path, FAMILY), models)
    assert answered == ["0", "1", "2", "3", "4"]
    assert ann.texts() == [f"did {i}" for i in range(5)]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "bob takes one argument, `task`: a text that is not empty."),
        ({"task": 3}, "bob takes one argument, `task`: a text that is not empty."),
        ({"task": " "}, "bob takes one argument, `task`: a text that is not empty."),
        ({"task": "x", "y": 1}, "bob takes one argument, `task`: a text that is not empty."),
        ("[1", "bob was not run: its arguments are no JSON object (they are not valid JSON)."),
    ],
)
async def test_a_task_that_is_none_fails_and_the_parent_goes_on(
    tmp_path: Path, arguments: object, text: str
) -> None:
    ann, bob = Playing([("bob", arguments)], "done"), Playing("never")
    models = {"ann": ann, "bob": bob, "cid": bob}
    played = await play(workspace_file(tmp_path, FAMILY), models)
    [part] = ann.results()
    assert (part.content, part.outcome) == (text, "failed")
    assert not bob.seen
    assert (played.records[0].event_type, played.records[0].outcome) == (
        "agent.delegated",
        "failed",
    )


class DeadSink(MemoryAuditSink):
    async def ready(self) -> None:
        raise OSError("the disk is gone")


async def test_without_an_audit_log_nothing_is_delegated(tmp_path: Path) -> None:
    ann, bob = Playing([("bob", {"task": "x"}), ("list", {})], "done"), Playing("never")
    models = {"ann": ann, "bob": bob, "cid": bob}
    await play(workspace_file(tmp_path, FAMILY), models, audit=DeadSink())
    could_not = "was not run: the gate could not decide (audit log unavailable). Tell the operator."
    assert ann.texts() == [f"bob {could_not}", f"list {could_not}"]
    assert not bob.seen
    assert reached(tmp_path) == []


async def test_a_model_that_raises_ends_the_run_with_its_reason(tmp_path: Path) -> None:
    def break_down(_messages: list[ModelMessage]) -> str:
        raise ConnectionError("the network\nis down")

    ann = Playing([("list", {})], break_down)
    played = await play(workspace_file(tmp_path, GUARDED), {"ann": ann})
    assert played.ending == NoAnswer("the model of agent `ann` gave no answer: the network is down")
    assert [row.skill for row in played.records] == ["list"]


async def test_a_childs_model_that_raises_ends_the_run_and_cancels_the_turn(
    tmp_path: Path,
) -> None:
    def break_down(_messages: list[ModelMessage]) -> str:
        raise ConnectionError("gone")

    ann = Playing([("cid", {"task": "wait"}), ("bob", {"task": "x"})], "never")
    cid = Playing([("slow", {})], "never")
    models = {"ann": ann, "bob": Playing(break_down), "cid": cid}
    with anyio.fail_after(30):
        played = await play(workspace_file(tmp_path, FAMILY), models)
    assert played.ending == NoAnswer("the model of agent `bob` gave no answer: gone")
    kinds = {(row.event_type, row.skill): row.error_kind for row in played.records}
    assert kinds[("agent.delegated", "bob")] == "raised"
    assert kinds[("agent.delegated", "cid")] == "cancelled"


async def test_the_tally_counts_per_agent(tmp_path: Path) -> None:
    ann = Playing([("get", {}), ("nothing", {})], [("list", {})], [("get", {})], "done")
    played = await play(workspace_file(tmp_path, GUARDED), {"ann": ann})
    tally = Tally()
    for event in played.events:
        tally(event)
    [(agent, count)] = tally.agents.items()
    assert (agent, count.calls, count.refusals, count.recoveries) == ("ann", 4, 2, 1)
    ended = [event for event in played.events if isinstance(event, CallEnded)]
    assert sum(isinstance(event.outcome, Refused) for event in ended) == 2
