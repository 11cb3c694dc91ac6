import json
import os
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from interceptors import AuditRecord
from seriatim.cli.app import app
from seriatim.cli.trace import trace
from seriatim.cli.tree import Call, run_tree
from seriatim.stores.rows import to_row
from seriatim.stores.schema import INSERT, open_for_writing
from tests.support.model_runs import workspace_file
from tests.support.records import COMPLETED, FAILED, REFUSED, fresh

LIST, GET = COMPLETED.skill, REFUSED.skill
HOSTILE = "\n\x1b[2K\r[bold]{}\x85\u2028\u202e\ud800\x00\x7f"


def at(second: float) -> str:
    return f"2026-05-09T07:35:{second:09.6f}Z"


def add(workspace: Path, *records: AuditRecord) -> Path:
    with closing(open_for_writing(workspace / ".seriatim" / "audit.sqlite3")) as connection:
        connection.executemany(INSERT, map(to_row, records))
    return workspace


def call(*arguments: object, **environment: str) -> Result:
    command = typer.Typer(add_completion=False)
    command.command()(trace)
    return CliRunner().invoke(command, [*map(str, arguments)], env=environment)


def delegated(to: str, **changes: Any) -> AuditRecord:
    return fresh(event_type="agent.delegated", skill=to, server=None, tool=None, **changes)


def story() -> list[AuditRecord]:
    """A run in the order in which its calls ended: a lesson, and two tasks in one turn."""
    return [
        fresh(REFUSED, time=at(0), decision_id="d-0000000a"),
        fresh(time=at(1)),
        fresh(skill=GET, time=at(2), duration=0.25),
        fresh(FAILED, time=at(3), error_kind="tool_error", output="it went wrong", duration=0.5),
        fresh(agent="reader", time=at(3.5), output="never shown"),
        delegated("reader", time=at(3), duration=1.0),
        fresh(REFUSED, agent="reader", time=at(4.25), decision_id="d-0000000b"),
        fresh(agent="reader", time=at(4.25)),
        delegated("reader", time=at(3), duration=2.0),
    ]


def test_the_tree_of_a_run(tmp_path: Path) -> None:
    result = call(add(tmp_path, *story()))
    assert result.exit_code == 0, result.output
    assert result.stdout == (
        "run run-1  topology solution-review  2026-05-09T07:35:00.000000Z  5.000 s\n"
        "└── planner\n"
        "    ├── turn 1  at 0.000 s  get-build-convention  REFUSED requires  0.000 s"
        "  decision 0000000a\n"
        f"    │     {REFUSED.reason}\n"
        "    ├── turn 2  at 1.000 s  list-build-conventions  completed  0.013 s\n"
        "    ├── turn 3  at 2.000 s  get-build-convention  completed  0.250 s"
        "  RECOVERED in 2 calls, learned from decision 0000000a\n"
        "    └── turn 4  at 3.000 s  3 calls side by side\n"
        "        ├── list-build-conventions  failed tool_error  0.500 s\n"
        "        │     it went wrong\n"
        "        ├── -> reader  completed  1.000 s\n"
        "        │   └── turn 1  at 3.500 s  list-build-conventions  completed  0.013 s\n"
        "        └── -> reader  completed  2.000 s\n"
        "            └── turn 2  at 4.250 s  2 calls side by side\n"
        "                ├── get-build-convention  REFUSED requires  0.000 s"
        "  decision 0000000b\n"
        f"                │     {REFUSED.reason}\n"
        "                └── list-build-conventions  completed  0.013 s\n"
    )
    assert result.stderr == ("run run-1: 7 calls, 2 refusals, 1 recovery, 1 failure in 5.000 s\n")


def test_json_is_one_object_with_the_same_tree(tmp_path: Path) -> None:
    result = call(add(tmp_path, *story()), "--format", "json")
    assert result.exit_code == 0, result.output
    [line] = result.stdout.splitlines()
    run = json.loads(line)
    [planner] = run.pop("agents")
    assert run == {
        "run": "run-1",
        "topology": "solution-review",
        "time": at(0),
        "duration": 5.0,
        "calls": 7,
        "refusals": 2,
        "recoveries": 1,
        "failures": 1,
    }
    assert (planner["agent"], planner["via"]) == ("planner", "model")
    first, _, third, fourth = planner["turns"]
    [refused], [recovered] = first["calls"], third["calls"]
    assert (refused["rule"], refused["reason"]) == ("requires", REFUSED.reason)
    assert refused["missing"] == [LIST]
    assert refused["recovered"] == []
    assert recovered["recovered"] == [{"calls": 2, "refusal": refused["decision_id"]}]
    failed, _, second_task = fourth["calls"]
    assert (failed["outcome"], failed["error_kind"]) == ("failed", "tool_error")
    assert second_task["event_type"] == "agent.delegated"
    [turn] = second_task["turns"]
    assert (turn["turn"], turn["time"]) == (2, at(4.25))
    assert [each["skill"] for each in turn["calls"]] == [GET, LIST]


def test_what_a_gateways_client_calls_stands_beside_the_tasks_of_the_same_agent(
    tmp_path: Path,
) -> None:
    result = call(
        add(
            tmp_path,
            fresh(agent="reader", time=at(1), via="gateway"),
            fresh(agent="reader", time=at(2)),
            delegated("reader", time=at(1.5)),
            fresh(agent="reader", time=at(3)),
        )
    )
    heads = [line for line in result.stdout.splitlines() if "turn" not in line]
    assert heads[1:] == ["├── reader  via gateway", "├── planner", "└── reader"]


def test_what_a_harness_calls_for_a_task_stands_under_the_delegation(tmp_path: Path) -> None:
    result = call(
        add(
            tmp_path,
            fresh(agent="reader", time=at(1), via="gateway"),
            fresh(agent="reader", time=at(2), via="gateway"),
            delegated("reader", time=at(0.5)),
        ),
        "--format",
        "json",
    )
    [planner] = json.loads(result.stdout)["agents"]
    [[delegation]] = [turn["calls"] for turn in planner["turns"]]
    assert [turn["time"] for turn in delegation["turns"]] == [at(1), at(2)]


def recoveries(*records: AuditRecord) -> list[tuple[str, int]]:
    """Return what each recovery learned from, and its calls, in the order of the turns."""

    def found(call: Call) -> list[tuple[str, int]]:
        return [(each.refusal.call_id, each.calls) for each in call.recoveries]

    tree = run_tree(records)
    return [
        recovery
        for agent in tree.agents
        for turn in agent.turns
        for call in turn.calls
        for recovery in found(call)
    ]


def test_a_recovery_points_at_the_last_refusal_and_counts_from_the_first() -> None:
    assert recoveries(
        fresh(REFUSED, time=at(0), call_id="first"),
        fresh(REFUSED, time=at(1), call_id="last"),
        fresh(time=at(2)),
        fresh(time=at(2)),
        fresh(skill=GET, time=at(3)),
        fresh(skill=GET, time=at(4)),
    ) == [("last", 4)]


def test_a_skill_can_be_recovered_from_again() -> None:
    assert recoveries(
        fresh(REFUSED, time=at(0), call_id="first"),
        fresh(skill=GET, time=at(1)),
        fresh(REFUSED, time=at(2), rule="budget", call_id="second"),
        fresh(skill=GET, time=at(3)),
    ) == [("first", 1), ("second", 1)]


@pytest.mark.parametrize("rule", ["permission", "grant", "limit", "gate"])
def test_there_is_no_recovery_from_a_refusal_that_names_no_way(rule: str) -> None:
    assert not recoveries(fresh(REFUSED, rule=rule, time=at(0)), fresh(skill=GET, time=at(1)))


def test_there_is_no_recovery_from_what_another_agent_or_the_same_turn_was_refused() -> None:
    assert not recoveries(
        fresh(REFUSED, agent="reader", time=at(0)),
        fresh(REFUSED, time=at(1)),
        fresh(skill=GET, time=at(1)),
        fresh(FAILED, skill=GET, time=at(2)),
    )


ANY_RECORD = st.builds(
    fresh,
    st.sampled_from([COMPLETED, REFUSED, FAILED]),
    agent=st.sampled_from("abc"),
    skill=st.sampled_from("abcxyz"),
    event_type=st.sampled_from(["skill.executed", "agent.delegated", "tool.changed"]),
    via=st.sampled_from(["model", "gateway"]),
    time=st.integers(0, 5).map(at),
)


@given(st.lists(ANY_RECORD, min_size=1))
def test_every_row_stands_in_the_tree_once(records: list[AuditRecord]) -> None:
    tree = run_tree(records)
    waiting = [call for agent in tree.agents for turn in agent.turns for call in turn.calls]
    found = []
    while waiting:
        call = waiting.pop()
        found.append(call.record.event_id)
        waiting += [below for turn in call.turns for below in turn.calls]
    assert sorted(found) == sorted(record.event_id for record in records)


def test_text_from_outside_moves_no_cursor_and_takes_no_line_of_its_own(tmp_path: Path) -> None:
    names = dict.fromkeys(("agent", "skill", "rule", "reason", "decision_id"), HOSTILE)
    records = [
        fresh(REFUSED, time=at(0), **names),
        fresh(FAILED, time=at(0), error_kind=HOSTILE, output=HOSTILE, **names),
    ]
    add(tmp_path, *(replace(record, topology=HOSTILE) for record in records))
    for form, lines in (("text", 7), ("json", 1)):
        result = call(tmp_path, "--format", form)
        assert result.exit_code == 0, result.output
        shown = result.stdout.removesuffix("\n").split("\n")
        assert len(shown) == lines
        assert all(line.isprintable() for line in shown)
    assert "[bold]" in call(tmp_path).stdout


def test_a_terminal_gets_colour_and_everything_else_gets_none(tmp_path: Path) -> None:
    add(tmp_path, *story())
    command = [sys.executable, "-m", "seriatim", "trace", str(tmp_path)]
    environment = {**os.environ, "COLUMNS": "200", "TERM": "xterm", "PYTHONIOENCODING": "utf-8"}
    environment = {k: v for k, v in environment.items() if k not in ("NO_COLOR", "SERIATIM_AUDIT")}

    def on_terminal(**more: str) -> str:
        ours, theirs = os.openpty()
        with (
            os.fdopen(ours, "rb", buffering=0) as screen,
            subprocess.Popen(
                command, stdout=theirs, stderr=subprocess.PIPE, env=environment | more
            ) as process,
        ):
            os.close(theirs)
            shown = b""
            try:
                while part := screen.read(4096):
                    shown += part
            except OSError:
                pass  # how Linux says that the other end is closed
            assert process.wait() == 0
        return shown.decode().replace("\r\n", "\n")

    coloured, plain = on_terminal(), on_terminal(NO_COLOR="1")
    assert "\x1b[1;33mREFUSED requires\x1b[0m" in coloured
    assert "\x1b" not in plain
    assert plain == call(tmp_path).stdout


def test_a_pipe_that_closes_early_is_no_error(tmp_path: Path) -> None:
    add(tmp_path, *(fresh(FAILED, output="x" * 2000) for _ in range(500)))
    command = [sys.executable, "-m", "seriatim", "trace", str(tmp_path), "--audit", ""]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"run run-1")
        process.stdout.close()
        assert b"Error" not in process.stderr.read()
        assert process.wait(20) == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["{empty}"], 1, "error: there is no audit log yet at"),
        (["{empty}"], 1, "hint: `seriatim run {empty} --input TEXT` makes one"),
        (["{full}", "--run", "run-9"], 1, "error: the audit log has no run `run-9`"),
        (["{full}", "--run", "run-9"], 1, "hint: the newest is `run-1`"),
        (["{full}", "--audit", "mysql://x:hidden@y/z"], 2, "`mysql://` is no audit store"),
        (["{full}", "--audit", "{full}"], 1, "is a directory"),
        (["{empty}/nowhere"], 2, "error: there is no `{empty}/nowhere`"),
        (["{full}", "--format", "svg"], 2, "svg"),
        (["{broken}"], 1, "holds a broken row"),
    ],
)
def test_what_cannot_be_printed_is_explained(
    tmp_path: Path, arguments: list[str], code: int, words: str
) -> None:
    places = {name: tmp_path / name for name in ("empty", "full", "broken")}
    for place in places.values():
        place.mkdir()
    add(places["full"], COMPLETED)
    add(places["broken"], fresh(time="yesterday"))
    result = call(*(argument.format(**places) for argument in arguments))
    assert (result.exit_code, result.stdout) == (code, "")
    assert words.format(**places) in result.stderr
    assert "hidden" not in result.stderr


def test_the_newest_run_is_printed_unless_another_is_named(tmp_path: Path) -> None:
    add(tmp_path, COMPLETED, fresh(run="run-2", time="2026-05-10T00:00:00.000000Z"))
    assert call(tmp_path).stdout.startswith("run run-2 ")
    assert call(tmp_path, "--run", "run-1").stdout.startswith("run run-1 ")


def test_a_broken_topology_does_not_hide_the_run(tmp_path: Path) -> None:
    add(tmp_path, COMPLETED)
    (tmp_path / "workspace.yaml").write_text("{ broken: [")
    assert call(tmp_path).exit_code == 0


AGENTS = """
agents:
  root:
    id: ann
    role: root
    skills: [list, get, fail]
    requires: {get: [list]}
    children:
      - {id: bob, role: worker, skills: [list]}
"""
SCRIPT = """
ann:
  - calls: [{skill: get}]
  - retry: true
  - calls:
      - {skill: bob, arguments: {task: one}}
      - {skill: fail}
      - {skill: bob, arguments: {task: two}}
  - say: done
bob:
  - calls: [{skill: list}]
  - say: one
  - calls: [{skill: list}, {skill: list}]
  - say: two
"""


def test_the_turns_of_a_real_run_hold_their_calls_and_their_delegations(tmp_path: Path) -> None:
    workspace = workspace_file(tmp_path, AGENTS)
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT, encoding="utf-8")
    command = ["run", str(workspace), "--script", str(script), "--input", "go"]
    ran = CliRunner().invoke(app, command)
    assert ran.exit_code == 0, ran.output
    result = CliRunner().invoke(app, ["trace", str(workspace), "--format", "json"])
    assert result.exit_code == 0, result.output
    [ann] = json.loads(result.stdout)["agents"]

    def shown(turns: list[Any]) -> list[Any]:
        """Sorted within a turn, whose calls end in any order."""
        return [
            sorted((call["skill"], *map(tuple, shown(call["turns"]))) for call in turn["calls"])
            for turn in turns
        ]

    listed = ("list",)
    assert shown(ann["turns"]) == [
        [("get",)],
        [listed],
        [("get",)],
        [("bob", (listed,)), ("bob", (listed, listed)), ("fail",)],
    ]
