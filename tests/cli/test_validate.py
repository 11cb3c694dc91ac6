"""`seriatim validate`, as a process and as a command."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from seriatim.cli.validate import validate

GOOD = """\
mcp_servers: [{id: s, command: [x]}]
skills: [{id: a, server: s, tool: a}, {id: b, server: s, tool: b}]
agents: {root: {id: r, skills: [a, b], requires: {b: [a]}}}
"""


def run(*arguments: str) -> Result:
    app = typer.Typer(rich_markup_mode=None)
    app.command()(validate)
    return CliRunner().invoke(app, [*arguments])


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    file = tmp_path / "topology.yaml"
    file.write_text(GOOD)
    return file


def test_a_topology_that_can_be_run_exits_with_0(topology: Path) -> None:
    result = run(str(topology))
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "0 errors, 0 warnings in 1 file\n"


def test_problems_go_to_stdout_and_exit_with_1(topology: Path) -> None:
    topology.write_text(GOOD.replace("[a]}", "[c]}"))
    result = run(str(topology))
    assert result.exit_code == 1
    assert (
        result.stdout
        == """\
topology.yaml:3:55: agent.requires-unknown-skill: agent `r` does not hold the skill `c`
  3 | agents: {root: {id: r, skills: [a, b], requires: {b: [c]}}}
    |                                                       ^

hint: the agent holds `a`, `b`

"""
    )
    assert result.stderr == "1 error, 0 warnings in 1 file\n"


def test_warnings_exit_with_0(topology: Path) -> None:
    topology.write_text(GOOD.replace("[a]}", "[a, a]}"))
    result = run(str(topology))
    assert result.exit_code == 0
    assert "agent.requires-duplicate (warning)" in result.stdout


def test_json_holds_problems_and_summary_alone(topology: Path) -> None:
    topology.write_text(GOOD.replace("[a]}", "[b]}"))
    result = run(str(topology), "--format", "json")
    assert (result.exit_code, result.stderr) == (1, "")
    written = json.loads(result.stdout)
    assert written["summary"] == {"errors": 1, "warnings": 0, "files": 1}
    assert written["problems"] == [
        {
            "code": "agent.requires-cycle",
            "severity": "error",
            "message": "`b` requires itself (`b -> b`); it can never be called",
            "path": "topology.yaml",
            "line": 3,
            "column": 51,
            "pointer": "/agents/root/requires/b",
            "hint": "take `b` out of its own rule",
        }
    ]


def test_json_of_a_sound_topology_is_an_object_too(topology: Path) -> None:
    written = json.loads(run(str(topology), "--format", "json").stdout)
    assert written == {"problems": [], "summary": {"errors": 0, "warnings": 0, "files": 1}}


@pytest.mark.parametrize("format_", ["text", "json"])
def test_no_such_path_exits_with_2(tmp_path: Path, format_: str) -> None:
    result = run(str(tmp_path / "missing"), "--format", format_)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: there is no file or directory")
    assert "\n\nhint: " in result.stderr


def test_nothing_to_validate_exits_with_2(tmp_path: Path) -> None:
    result = run(str(tmp_path))
    assert (result.exit_code, result.stdout) == (2, "")


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["a", "--format", "xml"]])
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2


def test_a_terminal_that_lacks_a_character_gets_an_escape(topology: Path) -> None:
    topology.write_text(GOOD.replace("[a]}", "[日]}"), encoding="utf-8")
    script = "from seriatim.cli.main import main; main()"
    command = [sys.executable, "-c", script, "validate", str(topology)]
    environment = {"PYTHONIOENCODING": "latin-1"}
    process = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert process.returncode == 1
    assert "`\\u65e5`" in process.stdout
    assert "Traceback" not in process.stderr


def test_the_command_imports_no_mcp_model_or_telemetry(topology: Path) -> None:
    script = (
        "import sys\n"
        "from seriatim.cli.main import main\n"
        "try: main()\n"
        "finally: print(*sys.modules)\n"
    )
    command = [sys.executable, "-c", script, "validate", str(topology)]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    heavy = {"mcp", "pydantic_ai", "opentelemetry", "httpx", "telemetry", "rich"}
    assert heavy.isdisjoint(process.stdout.split())
