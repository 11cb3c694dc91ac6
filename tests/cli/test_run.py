"""`seriatim run`: its streams and its exit code, on a real server."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from interceptors import AuditRecord
from seriatim.cli.app import app
from seriatim.stores.audit_log import open_audit_log
from tests.support.harnesses import FAKE
from tests.support.model_runs import reached, workspace_file

AGENTS = """
agents:
  root:
    id: ann
    role: root
    skills: [list, get, fail, slow, unicode, forge]
    requires: {get: [list]}
    children:
      - {id: bob, role: worker, skills: [list]}
"""
SCRIPT = """
ann:
  - calls: [{skill: get, arguments: {name: card, password: opensesame}}]
  - retry: true
  - calls: [{skill: bob, arguments: {task: look}}, {skill: fail}]
  - say: Cards have one button.
bob:
  - say: looked
"""
REFUSAL = (
    "get requires list, which has not been called in this session. Call list first, then retry."
)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "script.yaml").write_text(SCRIPT, encoding="utf-8")
    return workspace_file(tmp_path, AGENTS)


def script(workspace: Path, text: str) -> Path:
    file = workspace.parent / "script.yaml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(("OTEL_", "SERIATIM_", "ANTHROPIC_", "OPENAI_", "GROQ_")):
            monkeypatch.delenv(name)


def run(*words: object, stdin: str = "", **environment: str) -> Result:
    """Run the command in this process: starting one takes seconds, most of them for imports."""
    command = ["run", *map(str, words)]
    return CliRunner().invoke(app, command, input=stdin, env=environment)


def play(workspace: Path, *words: object, **environment: str) -> Result:
    played = workspace.parent / "script.yaml"
    return run(workspace, "--script", played, "--input", "Set up a card.", *words, **environment)


def rows_of(workspace: Path) -> list[AuditRecord]:
    with open_audit_log(workspace.parent / ".seriatim" / "audit.sqlite3") as log:
        return log.records({}, until=log.end())


def test_a_run_prints_the_last_text_and_tells_what_happened(workspace: Path) -> None:
    done = play(workspace, "--run", "r-1")
    assert (done.exit_code, done.stdout) == (0, "Cards have one button.\n"), done.stderr
    assert done.stderr.splitlines() == [
        "run r-1",
        "ann  asked      Set up a card.",
        'ann  calls      get {"name": "card", "password": "[redacted]"}',
        f"ann  REFUSED    get: {REFUSAL}",
        "ann  calls      list",
        "ann  done       list: console, card",
        'ann  calls      get {"name": "card", "password": "[redacted]"}',
        "ann  RECOVERED  get: Cards have one button.",
        *sorted(done.stderr.splitlines()[8:14], key=done.stderr.splitlines().index),
        "ann  says       Cards have one button.",
        "run r-1: 4 calls, 1 delegation, 1 refusal, 1 recovery; "
        f"`seriatim logs {workspace} --run r-1` shows them",
    ]
    assert sorted(done.stderr.splitlines()[8:14]) == [
        'ann  calls      bob {"task": "look"}',
        "ann  calls      fail",
        "ann  done       bob: looked",
        "ann  failed     fail: it went wrong",
        "bob  asked      look",
        "bob  says       looked",
    ]
    assert sorted(reached(workspace.parent)) == ["fail", "get_convention", "list_conventions"]


def test_the_result_for_programs_is_one_object(workspace: Path) -> None:
    done = play(workspace, "--format", "json", "--run", "r-1")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout) == {
        "run": "r-1",
        "text": "Cards have one button.",
        "agents": {
            "ann": {"calls": 4, "delegations": 1, "refusals": 1, "recoveries": 1},
            "bob": {"calls": 0, "delegations": 0, "refusals": 0, "recoveries": 0},
        },
    }


def test_the_rows_of_a_run_are_in_the_audit_log_of_the_workspace(workspace: Path) -> None:
    assert play(workspace, "--run", "r-1").exit_code == 0
    rows = rows_of(workspace)
    assert [(row.skill, row.outcome) for row in rows[:3]] == [
        ("get", "refused"),
        ("list", "completed"),
        ("get", "completed"),
    ]
    assert {row.run for row in rows} == {"r-1"}


def test_a_run_without_an_id_gets_a_fresh_one(workspace: Path) -> None:
    runs = [json.loads(play(workspace, "--format", "json").stdout)["run"] for _ in range(2)]
    assert runs[0] < runs[1]


def test_an_id_that_has_rows_is_refused(workspace: Path) -> None:
    assert play(workspace, "--run", "r-1").exit_code == 0
    again = play(workspace, "--run", "r-1")
    assert (again.exit_code, again.stdout) == (2, "")
    assert again.stderr.startswith("error: there is a run `r-1` already\n\nhint: ")


def test_the_input_is_read_from_stdin(workspace: Path) -> None:
    played = workspace.parent / "script.yaml"
    done = run(workspace, "--script", played, "--input", "-", stdin="from\nstdin\n")
    assert done.exit_code == 0, done.stderr
    assert "ann  asked      from\\nstdin\\n" in done.stderr


def test_beyond_the_cap_the_run_fails_and_still_prints_its_text(workspace: Path) -> None:
    script(workspace, "ann: [{calls: [{skill: list}, {skill: list}]}, {say: enough}]")
    done = play(workspace, "--max-calls", 1)
    assert (done.exit_code, done.stdout) == (1, "enough\n")
    assert "list was not run: this run has used its 1 calls. Finish without tools." in done.stderr
    assert "error: the run has used its 1 calls" in done.stderr


def test_the_environment_sets_the_cap(workspace: Path) -> None:
    script(workspace, "ann: [{calls: [{skill: list}, {skill: list}]}, {say: enough}]")
    assert play(workspace, SERIATIM_MAX_CALLS="1").exit_code == 1
    assert play(workspace, "--max-calls", 2, SERIATIM_MAX_CALLS="1").exit_code == 0


def test_an_agent_without_turns_fails_the_run(workspace: Path) -> None:
    script(workspace, "bob: []")
    done = play(workspace)
    assert (done.exit_code, done.stdout) == (1, "")
    assert (
        "error: the model of agent `ann` gave no answer: the script has no turns for agent `ann`"
    ) in done.stderr
    assert json.loads(play(workspace, "--format", "json").stdout)["text"] == ""


def test_a_hostile_text_takes_one_line_of_the_stream(workspace: Path) -> None:
    text = r'"\e[2J\rann  RECOVERED  x\n\u2028\u202e"'
    script(workspace, f"ann: [{{calls: [{{skill: unicode}}, {{skill: {text}}}]}}, {{say: {text}}}]")
    done = play(workspace)
    assert done.exit_code == 0, done.stderr
    assert all(line.isprintable() for line in done.stderr.split("\n"))
    assert len(done.stderr.splitlines()) == 8
    # A pipe gets the text as the model wrote it.
    assert done.stdout == "\x1b[2J\rann  RECOVERED  x\n\u2028\u202e\n"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--model", "anthropic:x", "--script", "s"], "`--model` and `--script` exclude each"),
        (["--run", "no spaces"], "`no spaces` cannot be the id of a run"),
        (["--run", "x" * 65], "cannot be the id of a run"),
        (["--topology", "tets"], "the workspace has no topology `tets`\n\nhint: did you mean"),
        (["--model", "claude"], "`claude` names no model"),
        (["--model", "nobody:x"], "is of an unknown provider\n\nhint: known are anthropic,"),
        (["--model", "anthropic:x"], "needs the environment variable `ANTHROPIC_API_KEY`"),
        (["--model", "openai:x"], "needs the environment variable `OPENAI_API_KEY`"),
        (["--model", "groq:x"], "hint: install it with `pip install 'pydantic-ai-slim[groq]'`"),
        ([], "agent `ann` has no model\n\nhint: name one with `--model PROVIDER:MODEL`"),
        (["--script", "none.yaml"], "there is no file `none.yaml`"),
        (["--max-calls", "0"], "--max-calls"),
        (["--audit", "mysql://u:p@h/d"], "error: `mysql://` is no audit store"),
        (["--otlp", "ftp://x"], "`--otlp` is `ftp://x`"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_wrong_usage_is_said_before_anything_starts(
    workspace: Path, words: list[str], problem: str
) -> None:
    if words[:1] in (["--audit"], ["--otlp"]):
        words = [*words, "--script", str(workspace.parent / "script.yaml")]
    done = run(workspace, "--input", "x", *words)
    assert (done.exit_code, done.stdout) == (2, ""), done.stderr
    assert problem in done.stderr
    assert isinstance(done.exception, SystemExit)
    assert not (workspace.parent / ".seriatim").exists()


@pytest.mark.parametrize("task", ["", "  \n"])
def test_an_empty_input_is_wrong_usage(workspace: Path, task: str) -> None:
    played = workspace.parent / "script.yaml"
    done = run(workspace, "--script", played, "--input", task)
    assert (done.exit_code, done.stderr.splitlines()[0]) == (2, "error: the input is empty")


def test_a_path_with_nothing_in_it_is_wrong_usage(tmp_path: Path) -> None:
    assert run(tmp_path / "none", "--input", "x").exit_code == 2


def test_a_broken_topology_is_not_run(workspace: Path) -> None:
    text = workspace.read_text(encoding="utf-8").replace("get: [list]", "get: [lits]")
    workspace.write_text(text, encoding="utf-8")
    done = play(workspace)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "agent.requires-unknown-skill" in done.stderr
    assert "did you mean `list`?" in done.stderr
    assert reached(workspace.parent) == []


def test_several_topologies_and_none_named_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "topologies").mkdir()
    (tmp_path / "workspace.yaml").write_text(
        "apiVersion: swarmkit/v1\nkind: Workspace\nmetadata: {id: w, name: W}\n"
    )
    for name in ("one", "two"):
        (tmp_path / "topologies" / f"{name}.yaml").write_text(
            "apiVersion: swarmkit/v1\nkind: Topology\n"
            f"metadata: {{name: {name}, version: 1.0.0}}\n"
            "agents:\n  root: {id: ann, role: root}\n"
        )
    done = run(tmp_path, "--input", "x")
    assert done.exit_code == 2
    assert "choose one with `--topology`: `one`, `two`" in done.stderr
    played = tmp_path / "s.yaml"
    played.write_text("ann: [{say: hi}]")
    done = run(tmp_path, "--input", "x", "--topology", "two", "--script", played)
    assert (done.exit_code, done.stdout) == (0, "hi\n"), done.stderr


def test_a_broken_script_is_said_with_its_places(workspace: Path) -> None:
    file = script(workspace, "ann: [{say: [x]}]\neve: []")
    done = play(workspace)
    assert done.exit_code == 2
    assert f"{file}:1:13: schema.bad-value: `say` is a text, not a list" in done.stderr
    assert f"{file}:2:1: schema.bad-value: the topology has no agent `eve`" in done.stderr


def test_stdout_is_for_the_result_whatever_interceptors_print(workspace: Path) -> None:
    (workspace.parent / "talkative.py").write_text(
        textwrap.dedent(
            """
            import os

            os.write(1, b"imported\\n")

            class Talks:
                async def __call__(self, call, proceed, /):
                    print("called")
                    return await proceed(call)
            """
        ),
        encoding="utf-8",
    )
    text = workspace.read_text(encoding="utf-8")
    settings = "seriatim: {interceptors: [{use: 'talkative:Talks'}]}\n"
    workspace.write_text(text + settings, encoding="utf-8")
    words = ["run", workspace, "--input", "x", "--script", workspace.parent / "script.yaml"]
    done = subprocess.run(
        [sys.executable, "-m", "seriatim", *words], capture_output=True, text=True, check=True
    )
    assert done.stdout == "Cards have one button.\n"
    assert {"imported", "called"} <= set(done.stderr.splitlines())


def test_a_missing_variable_is_named(workspace: Path) -> None:
    text = workspace.read_text(encoding="utf-8")
    text = text.replace('"env": {', '"env": {"TOKEN": "${BOX_TOKEN}", ')
    workspace.write_text(text, encoding="utf-8")
    done = play(workspace)
    assert done.exit_code == 1, done.stderr
    assert "environment variable `BOX_TOKEN`" in done.stderr
    assert done.stderr.endswith("\n\nhint: set `BOX_TOKEN`\n")
    assert play(workspace, BOX_TOKEN="x").exit_code == 0


def test_no_secret_is_in_the_stream(workspace: Path) -> None:
    text = workspace.read_text(encoding="utf-8")
    text = text.replace('"env": {', '"env": {"TOKEN": "${BOX_TOKEN}", ')
    workspace.write_text(text, encoding="utf-8")
    turn = "calls: [{skill: forge, arguments: {text: so-secret-value}}, {skill: so-secret-value}]"
    script(workspace, f"ann: [{{{turn}}}, {{say: so-secret-value}}]")
    done = play(workspace, BOX_TOKEN="so-secret-value")
    assert done.exit_code == 0, done.stderr
    assert 'ann  calls      forge {"text": "[redacted]"}' in done.stderr
    assert "ann  done       forge: [redacted]" in done.stderr
    assert "so-secret-value" not in done.stderr


def test_a_server_that_does_not_start_fails_its_calls_and_not_the_run(workspace: Path) -> None:
    text = workspace.read_text(encoding="utf-8").replace(sys.executable, "no-such-server")
    workspace.write_text(text, encoding="utf-8")
    script(workspace, "ann: [{calls: [{skill: list}]}, {say: well}]")
    done = play(workspace)
    assert (done.exit_code, done.stdout) == (0, "well\n"), done.stderr
    assert "server box is not available: " in done.stderr
    assert "ann  failed     list: list failed: server box is not available" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_in_order(workspace: Path, number: signal.Signals) -> None:
    file = script(workspace, "ann: [{calls: [{skill: slow}]}]")
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "seriatim", "run", str(workspace)),
            *("--script", str(file), "--input", "x", "--run", "r-1"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        err = ""
        for line in process.stderr:
            err += line
            if "calls      slow" in line:
                process.send_signal(number)
        out = process.stdout.read()
    assert (process.returncode, out) == (128 + number, ""), err
    assert "run r-1 was interrupted" in err
    assert "Traceback" not in err
    [row] = rows_of(workspace)
    assert (row.skill, row.outcome, row.error_kind) == ("slow", "failed", "cancelled")


HARNESSES = """
agents:
  root:
    id: ann
    role: root
    skills: [list, get]
    requires: {get: [list]}
    executor: {kind: harness, config: {command: COMMAND}}
"""


def driven(directory: Path, *command: str) -> Path:
    return workspace_file(directory, HARNESSES.replace("COMMAND", json.dumps(command)))


def test_an_agent_whose_executor_is_a_harness_is_driven_by_it(tmp_path: Path) -> None:
    file = driven(tmp_path, sys.executable, str(FAKE), "any", "--task")
    done = run(file, "--input", "Set up a card.", "--run", "r-1")
    assert (done.exit_code, done.stdout.startswith("Set up a card.: ")) == (0, True), done.stderr
    assert [line.split()[:2] for line in done.stderr.splitlines()[1:-1]] == [
        ["ann", "asked"],
        ["ann", "calls"],
        ["ann", "REFUSED"],
        ["ann", "calls"],
        ["ann", "done"],
        ["ann", "calls"],
        ["ann", "RECOVERED"],
        ["ann", "says"],
    ]
    assert "run r-1: 3 calls, 1 refusal, 1 recovery" in done.stderr
    assert {row.via for row in rows_of(file)} == {"gateway"}


def test_a_script_plays_the_part_of_a_harness_that_is_in_it(tmp_path: Path) -> None:
    file = driven(tmp_path, "no-such-command")
    (tmp_path / "script.yaml").write_text("ann: [{say: Played.}]\n", encoding="utf-8")
    assert play(file).stdout == "Played.\n"


def test_a_harness_that_fails_ends_the_run_with_1(tmp_path: Path) -> None:
    done = run(driven(tmp_path, "sh", "-c", "echo why >&2; exit 3"), "--input", "x")
    assert (done.exit_code, done.stdout) == (1, "")
    assert (
        "error: the harness of agent `ann` gave no answer: exited with code 3: why" in done.stderr
    )


@pytest.mark.parametrize(
    ("executor", "problem"),
    [
        ("config: {command: [no-such-command]}", "there is no command `no-such-command`"),
        ("ref: aider", "it is not known how to start the harness of agent `ann`"),
    ],
)
def test_a_harness_that_cannot_be_started_is_named_before_the_run(
    executor: str, problem: str, tmp_path: Path
) -> None:
    text = HARNESSES.replace("config: {command: COMMAND}", executor)
    done = run(workspace_file(tmp_path, text), "--input", "x")
    assert done.exit_code == 2
    assert f"error: {problem}" in done.stderr
    assert "--model PROVIDER:MODEL" in done.stderr
    assert not (tmp_path / ".seriatim").exists()
