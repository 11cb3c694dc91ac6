"""The tools that agents see."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from interceptors import AgentId, MemoryAuditSink, RunId, SkillId, ToolRef
from seriatim.runtime.run import Observers, open_run
from seriatim.runtime.servers.session import ListedTool
from seriatim.runtime.tools import advertised_tools, tools_of
from seriatim.topology.models import Skill
from seriatim.topology.resolver import load_workspace
from tests.support.model_runs import workspace_file

pytestmark = pytest.mark.anyio

AGENTS = """
agents:
  root:
    id: ann
    role: root
    skills: [structured, search, fixed, strange]
"""


@pytest.fixture
def anyio_backend() -> str:
    """The servers are started on the loop that the command uses."""
    return "asyncio"


def with_skills(file: Path, *skills: dict[str, object], command: str = "") -> Path:
    lines = file.read_text(encoding="utf-8").splitlines()
    for index, line in enumerate(lines):
        if line.startswith("skills: "):
            known = json.loads(line.removeprefix("skills: "))
            lines[index] = f"skills: {json.dumps([*known, *skills])}"
        if command and line.startswith("mcp_servers: "):
            servers = [{"id": "box", "command": [command]}]
            lines[index] = f"mcp_servers: {json.dumps(servers)}"
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


FIXED = {
    "id": "fixed",
    "description": "With a fixed query.",
    "server": "box",
    "tool": "search_code",
    "arguments": {"query": "card"},
}
STRANGE = {
    "id": "strange",
    "description": "A tool that the server does not list.",
    "server": "box",
    "tool": "strange",
}


class Listing:
    """Lists one tool that wants two arguments."""

    def __init__(self, *required: str) -> None:
        self._required = list(required)

    @property
    def edition(self) -> int:
        return 1

    def tools(self, _server: str) -> Mapping[str, ListedTool]:
        schema = {
            "type": "object",
            "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
            "required": self._required,
            "additionalProperties": False,
        }
        tool = {"name": "search_code", "inputSchema": schema}
        return {"search_code": ListedTool.model_validate(tool)}


@pytest.mark.parametrize(
    ("required", "left"),
    [(("query", "limit"), {"required": ["limit"]}), (("query",), {}), ((), {})],
)
def test_a_fixed_argument_is_not_required_and_the_rest_of_the_schema_stays(
    required: tuple[str, ...], left: dict[str, object]
) -> None:
    skill = Skill(
        id=SkillId("fixed"),
        description="With a fixed query.",
        tool=ToolRef("box", "search_code"),
        fixed={"query": "card"},
        required_scopes=frozenset(),
        timeout=1,
        redact=frozenset(),
    )
    [tool] = tools_of(Listing(*required), [skill])
    assert tool.description == "With a fixed query."
    assert tool.input_schema == {
        "type": "object",
        "properties": {"limit": {"type": "integer"}},
        "additionalProperties": False,
        **left,
    }


async def advertised(file: Path) -> list[dict[str, object]]:
    workspace = load_workspace(file)
    [topology] = workspace.topologies.values()
    async with open_run(
        RunId("r"),
        workspace,
        topology,
        [AgentId("ann")],
        audit=MemoryAuditSink(),
        max_calls=1,
        environ=os.environ,
        observers=Observers(),
    ) as run:
        tools = advertised_tools(run, topology.root)
    return [tool.model_dump(by_alias=True, exclude_none=True) for tool in tools]


async def test_a_tool_is_as_its_server_says_under_the_id_of_its_skill(tmp_path: Path) -> None:
    file = with_skills(workspace_file(tmp_path, AGENTS), FIXED, STRANGE)
    structured, search, _, _ = await advertised(file)
    assert structured["name"] == "structured"
    assert structured["outputSchema"] == {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
    }
    assert search == {
        "name": "search",
        "description": "Searches the code of all solutions.",
        "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}},
        "annotations": {"readOnlyHint": True},
    }


async def test_fixed_arguments_are_not_asked_for(tmp_path: Path) -> None:
    file = with_skills(workspace_file(tmp_path, AGENTS), FIXED, STRANGE)
    _, _, fixed, _ = await advertised(file)
    assert fixed["inputSchema"] == {"type": "object", "properties": {}}


async def test_a_tool_that_is_not_listed_is_described_by_its_skill(tmp_path: Path) -> None:
    file = with_skills(workspace_file(tmp_path, AGENTS), FIXED, STRANGE)
    assert (await advertised(file))[3] == {
        "name": "strange",
        "description": "A tool that the server does not list.",
        "inputSchema": {"type": "object"},
    }


async def test_the_tools_of_a_server_that_does_not_start_are_described_by_their_skills(
    tmp_path: Path,
) -> None:
    file = with_skills(workspace_file(tmp_path, AGENTS), FIXED, STRANGE, command="no-such-server")
    assert [(tool["name"], tool["description"]) for tool in await advertised(file)] == [
        ("structured", "The skill structured."),
        ("search", "The skill search."),
        ("fixed", "With a fixed query."),
        ("strange", "A tool that the server does not list."),
    ]
