"""`seriatim init`: a workspace that validates and works, and that is a person's afterwards."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types
import pytest
from click.testing import Result
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from typer.testing import CliRunner

from seriatim.cli.app import app
from seriatim.topology import Sound, load

SERVERS = Path(__file__).parents[1] / "support" / "servers"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SERVER", str(SERVERS / "any_tools.py"))
    return tmp_path


def server(*tools: str, **more: Any) -> dict[str, Any]:
    """Return the entry of a server that lists `tools`."""
    env = {"TOOLS": ",".join(tools)}
    return {"command": sys.executable, "args": ["${SERVER}"], "env": env, **more}


def init(project: Path, *words: str, **servers: Any) -> Result:
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return CliRunner().invoke(app, ["init", "--from", ".mcp.json", *words])


def files(directory: Path) -> dict[str, str]:
    return {
        file.relative_to(directory).as_posix(): file.read_text(encoding="utf-8")
        for file in directory.rglob("*.yaml")
    }


def sound(directory: Path) -> Sound:
    loaded = load(directory)
    assert isinstance(loaded, Sound), loaded.problems
    assert loaded.problems == ()
    return loaded


def test_the_workspace_validates_and_its_agent_holds_a_skill_for_each_tool(project: Path) -> None:
    done = init(project, a=server("read_file", "no", "検索"), b=server("read_file", "list"))
    assert done.exit_code == 0, done.stderr
    written = [
        "seriatim/workspace.yaml",
        "seriatim/skills/no.yaml",
        "seriatim/skills/a-tool.yaml",
        "seriatim/skills/a-read-file.yaml",
        "seriatim/skills/b-read-file.yaml",
        "seriatim/skills/list.yaml",
        "seriatim/topologies/main.yaml",
    ]
    assert sorted(done.stdout.splitlines()) == sorted(written)
    workspace = sound(project / "seriatim").workspace
    root = workspace.topologies["main"].root
    assert [(skill.id, skill.tool.server, skill.tool.name) for skill in root.skills] == [
        ("a-read-file", "a", "read_file"),
        ("no", "a", "no"),
        ("a-tool", "a", "検索"),
        ("b-read-file", "b", "read_file"),
        ("list", "b", "list"),
    ]


def test_the_comments_show_where_rules_go_and_they_are_rules_once_uncommented(
    project: Path,
) -> None:
    init(project, a=server("list_files", "read_file"))
    topology = project / "seriatim" / "topologies" / "main.yaml"
    text = topology.read_text(encoding="utf-8")
    assert text.endswith("    # requires:\n    #   read-file: [list-files]\n")
    topology.write_text(text.replace("# requires:", "requires:").replace("#   read", "  read"))
    root = sound(project / "seriatim").workspace.topologies["main"].root
    assert root.requires == {"read-file": ("list-files",)}


def test_a_secret_is_in_no_file_and_the_talk_says_what_to_set(project: Path) -> None:
    entry = server("x")
    entry["env"]["API_KEY"] = "hunter2hunter2"
    done = init(project, a=entry)
    assert done.exit_code == 0, done.stderr
    everything = [file.read_bytes() for file in (project / "seriatim").rglob("*") if file.is_file()]
    assert not any(b"hunter2hunter2" in content for content in everything)
    assert "hunter2" not in done.output
    assert "  API_KEY: `env` of server `a`\n" in done.stderr
    assert "#   API_KEY: `env` of server `a`\n" in files(project / "seriatim")["workspace.yaml"]


def test_a_server_that_does_not_answer_is_reported_and_the_rest_is_written(project: Path) -> None:
    done = init(project, a=server("x"), dead={"command": "no-such-command"})
    assert done.exit_code == 1
    assert "server dead does not answer: cannot be started" in done.stderr
    workspace = sound(project / "seriatim").workspace
    assert list(workspace.servers) == ["a", "dead"]
    assert [skill.id for skill in workspace.topologies["main"].root.skills] == ["x"]


def test_without_any_answer_nothing_is_written(project: Path) -> None:
    done = init(project, dead={"command": "no-such-command"})
    assert (done.exit_code, done.stdout) == (1, "")
    assert files(project) == {}


def test_a_second_time_changes_nothing_and_says_so(project: Path) -> None:
    init(project, a=server("x", "y"))
    before = files(project)
    done = init(project, a=server("x", "y"))
    assert (done.exit_code, done.stdout) == (0, "")
    assert "0 files written, 0 new skills" in done.stderr
    assert files(project) == before


def test_a_new_tool_gets_a_skill_and_no_file_that_is_there_is_touched(project: Path) -> None:
    init(project, a=server("x", "y"))
    topology = project / "seriatim" / "topologies" / "main.yaml"
    topology.write_text(topology.read_text() + "    requires: {y: [x]}\n")
    (project / "seriatim" / "skills" / "x.yaml").rename(project / "seriatim" / "skills" / "z.yaml")
    before = files(project)
    done = init(project, a=server("x", "z"))
    assert done.exit_code == 0, done.stderr
    assert done.stdout == "seriatim/skills/a-z.yaml\n"
    assert "new: `a-z` of server a; an agent that is to have it names it" in done.stderr
    assert "gone: server a no longer lists the tool of skill `y`" in done.stderr
    after = files(project)
    assert {name: text for name, text in after.items() if name in before} == before
    sound(project / "seriatim")


def test_a_new_server_is_shown_for_a_person_to_add_and_then_its_tools_come(project: Path) -> None:
    init(project, a=server("x"))
    both = {"a": server("x"), "b": {**server(), "env": {"TOOLS": "y", "TOKEN": "secret-secret"}}}
    done = init(project, **both)
    assert (done.exit_code, done.stdout) == (0, "")
    _, _, entry = done.stderr.partition("and run this again\n\n")
    assert entry.startswith("- id: b\n")
    assert "secret-secret" not in done.stderr
    manifest = project / "seriatim" / "workspace.yaml"
    manifest.write_text(manifest.read_text() + entry)
    done = init(project, **both)
    assert (done.exit_code, done.stdout) == (0, "seriatim/skills/y.yaml\n"), done.stderr
    sound(project / "seriatim")


def test_a_workspace_with_errors_is_left_alone(project: Path) -> None:
    init(project, a=server("x"))
    (project / "seriatim" / "skills" / "x.yaml").unlink()
    done = init(project, a=server("x", "y"))
    assert done.exit_code == 1
    assert "agent.unknown-skill" in done.stderr
    assert "error: the workspace in `seriatim` has errors" in done.stderr
    assert "skills/y.yaml" not in files(project / "seriatim")


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_gateway_serves_what_was_written(project: Path) -> None:
    source = project / "app" / ".vscode" / "mcp.json"
    source.parent.mkdir(parents=True)
    (project / "app" / "server.py").write_text((SERVERS / "any_tools.py").read_text())
    entry = {"command": sys.executable, "args": ["server.py"], "env": {"TOOLS": "one,two"}}
    source.write_text("// ours\n" + json.dumps({"servers": {"a": entry}}))
    command = [sys.executable, "-m", "seriatim"]
    environment = {"TOOLS": "one,two", "PATH": os.environ["PATH"]}
    done = await anyio.run_process(
        [*command, "init", "--from", str(source), "--out", "written"], env=environment
    )
    assert done.stdout.splitlines()[0] == b"written/workspace.yaml"
    parameters = StdioServerParameters(
        command=command[0],
        args=[*command[1:], "gateway", "written", "--agent", "agent"],
        env=environment,
    )
    with (project / "stderr").open("w") as stderr:
        async with Client(stdio_client(parameters, errlog=stderr)) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["one", "two"]
            result = await client.call_tool("two", {"x": 1})
            block = result.content[0]
            assert isinstance(block, mcp_types.TextContent)
            assert json.loads(block.text) == ["two", {"x": 1}]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--from", "none.json"], "cannot read `none.json`: no such file or directory"),
        (["--from", ".mcp.json", "--out", ".mcp.json"], "`.mcp.json` is no directory"),
        (["--from", ".mcp.json"], "`.mcp.json` names no servers"),
    ],
)
def test_wrong_usage_ends_with_2(words: list[str], problem: str, project: Path) -> None:
    (project / ".mcp.json").write_text("{}")
    done = CliRunner().invoke(app, ["init", *words])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {problem}")
