import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import fields, replace
from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from interceptors import AuditRecord
from seriatim.cli.lines import Widths, escaped, header, json_line, text_lines
from seriatim.cli.logs import logs
from seriatim.stores.rows import to_row
from seriatim.stores.schema import INSERT, open_for_writing
from tests.support.records import COMPLETED, FAILED, REFUSED, fresh

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=40)
HOSTILE = "\n\x1b[2K\r{}\x85\u2028\u2029\u202e\u2066\ud800\x00\x7f\x9b"
PROGRAM = "import typer; from seriatim.cli.logs import logs; typer.run(logs)"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    add(tmp_path, COMPLETED, REFUSED, FAILED)
    return tmp_path


def add(workspace: Path, *records: AuditRecord) -> None:
    with closing(open_for_writing(workspace / ".seriatim" / "audit.sqlite3")) as connection:
        connection.executemany(INSERT, map(to_row, records))


def call(*arguments: object, **environment: str) -> Result:
    app = typer.Typer(add_completion=False)
    app.command()(logs)
    return CliRunner().invoke(app, [*map(str, arguments)], env=environment)


def printed(*arguments: object) -> list[str]:
    result = call(*arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    return [json.loads(line)["call_id"] for line in result.stdout.splitlines()]


@contextmanager
def started(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={key: value for key, value in os.environ.items() if key != "SERIATIM_AUDIT"},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def next_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_each_row_is_a_line_and_a_refusal_shows_its_reason(workspace: Path) -> None:
    result = call(workspace)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "2026-05-09T07:35:25.123456Z  planner  list-build-conventions  completed            0.013 s"
        "  decision 000000aa",
        "2026-05-09T07:35:25.123456Z  planner  get-build-convention    REFUSED requires     0.000 s"
        "  decision 000000aa",
        f"    {REFUSED.reason}",
        "2026-05-09T07:35:25.123456Z  planner  list-build-conventions  failed timeout      60.000 s"
        "  decision 000000aa",
        f"    {FAILED.output}",
    ]
    assert result.stderr == "run run-1, topology solution-review (times are UTC)\n"


def test_json_has_the_fields_of_a_row_in_order(workspace: Path) -> None:
    result = call(workspace, "--format", "json")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [list(row) for row in rows] == [[field.name for field in fields(AuditRecord)]] * 3
    assert rows[1]["missing"] == ["list-build-conventions"]
    assert rows[1]["policy_decision"] == "deny"
    assert rows[0]["inputs"] == {"limit": 3}
    assert result.stderr == ""


def test_the_newest_run_is_printed_unless_another_is_named(workspace: Path) -> None:
    add(workspace, fresh(run="run-2", time="2026-05-10T00:00:00.000000Z", call_id="later"))
    assert printed(workspace) == ["later"]
    assert printed(workspace, "--run", "run-1") == ["call-1"] * 3


def test_rows_are_filtered_and_limited(workspace: Path) -> None:
    add(workspace, fresh(agent="reviewer", call_id="last", time="2026-05-10T00:00:00.000000Z"))
    assert printed(workspace, "--agent", "reviewer") == ["last"]
    assert printed(workspace, "--skill", REFUSED.skill) == ["call-1"]
    assert printed(workspace, "--decision", "deny") == ["call-1"]
    assert printed(workspace, "--decision", "allow") == ["call-1", "call-1", "last"]
    assert printed(workspace, "--limit", 2) == ["call-1", "last"]


def test_rows_that_do_not_match_leave_a_word(workspace: Path) -> None:
    result = call(workspace, "--agent", "nobody")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "no call of run run-1 matches\n"


def test_a_broken_topology_does_not_hide_the_log(workspace: Path) -> None:
    (workspace / "workspace.yaml").write_text("{ broken: [")
    assert printed(workspace) == ["call-1"] * 3


def test_a_single_file_has_its_log_beside_it(workspace: Path) -> None:
    file = workspace / "review.yaml"
    file.write_text("{ broken: [")
    result = call(file)
    assert result.exit_code == 0
    assert "looking for the log in its usual place" in result.stderr


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("seriatim.yaml", "audit: logs/a.db"),
        ("one.yaml", "seriatim:\n  audit: sqlite:///logs/a.db"),
    ],
)
def test_the_settings_may_place_the_log(workspace: Path, name: str, text: str) -> None:
    (workspace / name).write_text(text + "\nfurther: {settings: [of, any, shape]}\n")
    (workspace / "logs").mkdir()
    (workspace / ".seriatim" / "audit.sqlite3").rename(workspace / "logs" / "a.db")
    named = workspace if name == "seriatim.yaml" else workspace / name
    assert printed(named) == ["call-1"] * 3


def test_flag_and_environment_may_place_the_log(workspace: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.db"
    (workspace / ".seriatim" / "audit.sqlite3").rename(elsewhere)
    assert call(workspace).exit_code == 1
    assert call(workspace, "--audit", elsewhere).exit_code == 0
    assert call(workspace, SERIATIM_AUDIT=f"sqlite:///{elsewhere}").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["{empty}"], 1, "error: there is no audit log yet at"),
        (["{empty}"], 1, "hint: `seriatim run {empty} --input TEXT` makes one"),
        (["{full}", "--run", "run-9"], 1, "error: the audit log has no run `run-9`"),
        (["{full}", "--run", "run-9"], 1, "hint: the newest is `run-1`"),
        (
            ["{full}", "--audit", "postgresql://x:hidden@y/z"],
            2,
            "`postgresql://` is no audit store",
        ),
        (["{full}", "--audit", "{full}"], 1, "is a directory"),
        (["{empty}/nowhere"], 2, "error: there is no `{empty}/nowhere`"),
        (["{full}", "--decision", "maybe"], 2, "maybe"),
        (["{full}", "--limit", "0"], 2, "limit"),
    ],
)
def test_what_cannot_be_printed_is_explained(
    workspace: Path, arguments: list[str], code: int, words: str
) -> None:
    empty = workspace / "empty"
    empty.mkdir()
    filled = [argument.format(empty=empty, full=workspace) for argument in arguments]
    result = call(*filled)
    assert result.exit_code == code
    assert words.format(empty=empty, full=workspace) in result.stderr
    assert result.stdout == ""
    assert "hidden" not in result.stderr


def test_the_environment_is_a_setting_seen_from_the_workspace(workspace: Path) -> None:
    (workspace / "seriatim.yaml").write_text("audit: nowhere.db")
    assert call(workspace).exit_code == 1
    assert call(workspace, SERIATIM_AUDIT=".seriatim/audit.sqlite3").exit_code == 0


def test_a_name_that_is_no_unicode_matches_nothing(workspace: Path) -> None:
    result = call(workspace, "--skill", "\udcff", "--run", "run-1")
    assert (result.exit_code, result.stderr) == (0, "no call of run run-1 matches\n")


def test_a_log_without_rows_is_explained(tmp_path: Path) -> None:
    add(tmp_path)
    result = call(tmp_path)
    assert result.exit_code == 1
    assert "error: nothing has been recorded yet" in result.stderr


def test_a_pipe_that_closes_early_is_no_error(workspace: Path) -> None:
    add(workspace, *(fresh(output="x" * 2000) for _ in range(500)))
    with started(workspace, "--format", "json") as process:
        assert next_line(process).startswith("{")
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
        assert process.wait(timeout=20) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT")
def test_following_prints_what_comes_and_ends_quietly(workspace: Path) -> None:
    with started(workspace, "--follow", "--limit", 1) as process:
        assert "failed timeout" in next_line(process)
        assert FAILED.output is not None
        assert FAILED.output in next_line(process)
        add(workspace, fresh(run="run-2", skill="of-a-new-run"))
        assert "of-a-new-run" in next_line(process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, "")
    assert [line.split(",")[0] for line in err.splitlines()] == ["run run-1", "run run-2"]


def test_following_waits_for_the_first_row(tmp_path: Path) -> None:
    with started(tmp_path, "--follow", "--run", "run-1", "--format", "json") as process:
        assert process.stderr is not None
        assert process.stderr.readline().endswith("waiting for it\n")
        add(tmp_path, fresh(run="run-0"), fresh(call_id="first"))
        assert json.loads(next_line(process))["call_id"] == "first"


def test_text_from_outside_moves_no_cursor() -> None:
    record = replace(REFUSED, skill=HOSTILE, agent=HOSTILE, reason=HOSTILE, rule=HOSTILE)
    lines = text_lines(record, Widths().widened([record]), colour=False)
    assert len(lines) == 2
    assert lines[1] == (r"    \n\x1b[2K\r{}\x85\u2028\u2029\u202e\u2066\ud800\x00\x7f\x9b")


@given(st.sampled_from([COMPLETED, REFUSED, FAILED]), st.data())
def test_any_row_takes_exactly_its_lines(kind: AuditRecord, data: st.DataObject) -> None:
    names = ["time", "run", "topology", "agent", "skill", "decision_id", "rule", "reason", "output"]
    names += ["error_kind", "call_id", "server", "tool", "via", "event_id"]
    texts = {name: data.draw(ANY_TEXT) for name in names}
    record = replace(kind, inputs={data.draw(ANY_TEXT): data.draw(ANY_TEXT)}, **texts)  # type: ignore[arg-type]  # only texts
    lines = text_lines(record, Widths().widened([record]), colour=False)
    assert len(lines) == (1 if kind is COMPLETED else 2)
    for line in [*lines, json_line(record), header(record)]:
        assert line.isprintable()
        assert line.splitlines() == [line]
    assert json.loads(json_line(record))["reason"] == record.reason


@given(ANY_TEXT)
def test_what_prints_is_not_escaped(text: str) -> None:
    assert escaped(text) == text if text.isprintable() else escaped(text).isprintable()


def test_colour_marks_the_outcome_alone() -> None:
    plain = text_lines(REFUSED, Widths(), colour=False)
    coloured = text_lines(REFUSED, Widths(), colour=True)
    assert coloured[0].replace("\x1b[33m\x1b[1m", "").replace("\x1b[0m", "") == plain[0]
    assert coloured[1:] == plain[1:]


def test_a_tool_that_prints_a_refusal_is_still_a_failure() -> None:
    forged = replace(FAILED, error_kind="tool_error", output=f"{REFUSED.reason}\nREFUSED requires")
    first, second = text_lines(forged, Widths(), colour=False)
    assert "failed tool_error" in first
    assert "REFUSED" not in first
    assert second.startswith("    ")


def test_a_terminal_that_lacks_a_character_gets_its_escape(workspace: Path) -> None:
    add(workspace, fresh(skill="façade-€", call_id="last", time="2026-05-10T00:00:00.000000Z"))
    result = subprocess.run(
        [sys.executable, "-m", "seriatim", "logs", workspace, "--limit", "1"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        check=True,
    )
    assert b"fa\xe7ade-\\u20ac" in result.stdout
