"""Published MCP servers behind the gateway: what they list and answer is what they do directly."""

import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio
import mcp_types
import pytest
import yaml
from mcp import Client, StdioServerParameters

from interceptors import MemoryAuditSink
from tests.support.executors import opened
from tests.support.gateways import Era, over_streams
from tests.support.services import made_by, require

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]

ERAS: Final[tuple[Era, ...]] = ("auto", "legacy")
PACKAGES: Final = "node_modules/@modelcontextprotocol"
Json = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Where the servers are installed, and a directory with a repository for them to work in."""

    installed: Path
    directory: Path

    def command(self, server: str) -> list[str]:
        python = str(self.installed / "venv" / "bin" / "python")
        node = str(self.installed / "node_modules" / "node" / "bin" / "node")
        match server:
            case "git" | "time":
                return [python, "-m", f"mcp_server_{server}"]
            case "filesystem":
                return [node, self._script(server), str(self.directory)]
            case _:
                return [node, self._script(server)]

    def environment(self, server: str) -> dict[str, str]:
        match server:
            case "memory":
                return {"MEMORY_FILE_PATH": str(self.directory / "memory.json")}
            case _:
                return {}

    def _script(self, server: str) -> str:
        return str(self.installed / PACKAGES / f"server-{server}" / "dist" / "index.js")

    def calls(self, server: str) -> Sequence[tuple[str, Json]]:
        """Return calls that answer the same each time, some of them with an error."""
        repository = {"repo_path": str(self.directory)}
        note, elsewhere = str(self.directory / "note.txt"), "/etc/passwd"
        clock = {"source_timezone": "UTC", "target_timezone": "Asia/Tokyo"}
        match server:
            case "git":
                return [
                    ("git_status", repository),
                    ("git_log", repository),
                    ("git_show", {**repository, "revision": "HEAD"}),
                    ("git_show", {**repository, "revision": "no-such-revision"}),
                    ("git_status", {}),
                ]
            case "time":
                return [
                    ("convert_time", {**clock, "time": "16:30"}),
                    ("convert_time", {**clock, "time": "at noon"}),
                    ("get_current_time", {"timezone": "Mars/Olympus_Mons"}),
                ]
            case "filesystem":
                return [
                    ("list_allowed_directories", {}),
                    ("read_text_file", {"path": note}),
                    ("read_text_file", {"path": elsewhere}),
                    ("list_directory", {"path": str(self.directory)}),
                    ("read_media_file", {"path": str(self.directory / "pixel.png")}),
                    ("read_text_file", {"wrong": 1}),
                ]
            case "memory":
                return [
                    ("read_graph", {}),
                    ("search_nodes", {"query": "nothing"}),
                    ("open_nodes", {"names": "no list"}),
                ]
            case _:
                return [
                    ("echo", {"message": "naïve ☃ 𝕏"}),
                    ("get-sum", {"a": 1, "b": 2.5}),
                    ("get-sum", {"a": "one"}),
                    ("get-tiny-image", {}),
                    ("get-annotated-message", {"messageType": "error", "includeImage": True}),
                    ("get-structured-content", {"location": "Chicago"}),
                    ("get-resource-links", {"count": 2}),
                ]


SERVERS: Final = ("git", "time", "filesystem", "memory", "everything")


@pytest.fixture
def anyio_backend() -> str:
    """The servers are processes of their own; one event loop says enough of them."""
    return "asyncio"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    installed = Path(made_by("mcp-servers", "--built"))
    if not shutil.which("git"):
        require("git is not installed")
    directory = tmp_path / "work"
    directory.mkdir()
    (directory / "note.txt").write_text("noted\n", encoding="utf-8")
    (directory / "pixel.png").write_bytes(b"\x89PNG\r\n")
    author = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (["init", "-q"], ["add", "note.txt"], [*author, "commit", "-qm", "first"]):
        subprocess.run(["git", *command], cwd=directory, check=True)
    return Place(installed, directory)


async def git(place: Place, *arguments: str) -> str:
    done = await anyio.run_process(["git", *arguments], cwd=place.directory)
    return done.stdout.decode()


@asynccontextmanager
async def direct(place: Place, server: str) -> AsyncIterator[Client]:
    command, *arguments = place.command(server)
    parameters = StdioServerParameters(
        command=command, args=arguments, env=place.environment(server)
    )
    async with Client(parameters) as client:
        yield client


def definition_of(place: Place, server: str) -> Json:
    return {"id": server, "command": place.command(server), "env": place.environment(server)}


def workspace(
    directory: Path,
    servers: Sequence[Json],
    tools: Mapping[str, tuple[str, str]],
    requires: Mapping[str, list[str]] | None = None,
) -> Path:
    """Write a workspace of one agent, `ada`; `tools` are skill id -> server and tool."""
    agent: Json = {"id": "ada", "role": "root", "skills": list(tools)}
    content = {
        "metadata": {"name": "real"},
        "mcp_servers": list(servers),
        "skills": [
            {"id": skill, "server": server, "tool": tool} for skill, (server, tool) in tools.items()
        ],
        "agents": {"root": agent | ({"requires": dict(requires)} if requires else {})},
    }
    file = directory / "topology.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file


@asynccontextmanager
async def through(file: Path, era: Era) -> AsyncIterator[Client]:
    async with opened(file, MemoryAuditSink()) as run:
        assert not run.servers.problems()
        async with over_streams(run, "ada", era) as client:
            yield client


async def answer(client: Client, tool: str, arguments: Json) -> Json:
    """Return all that a client gets for a call, be it a result or an error."""
    try:
        result = await client.session.send_request(
            mcp_types.CallToolRequest(
                params=mcp_types.CallToolRequestParams(name=tool, arguments=arguments)
            ),
            mcp_types.CallToolResult,
        )
    except mcp_types.MCPError as error:
        return {"code": error.code, "message": error.message, "data": error.data}
    shown: Json = result.model_dump(by_alias=True, exclude_none=True, mode="json")
    # Each server stamps its own name on its results.
    meta = shown.pop("_meta", {})
    rest = {key: value for key, value in meta.items() if key != mcp_types.SERVER_INFO_META_KEY}
    return shown | ({"_meta": rest} if rest else {})


async def assert_same(file: Path, plain: Client, calls: Sequence[tuple[str, Json]]) -> None:
    listed = [shown(tool) for tool in (await plain.list_tools()).tools]
    expected = [await answer(plain, tool, arguments) for tool, arguments in calls]
    for era in ERAS:
        async with through(file, era) as client:
            assert [shown(tool) for tool in (await client.list_tools()).tools] == listed
            for (tool, arguments), answered in zip(calls, expected, strict=True):
                assert await answer(client, tool, arguments) == answered


def shown(tool: mcp_types.Tool) -> Json:
    return tool.model_dump(by_alias=True, exclude_none=True, mode="json")


@pytest.mark.parametrize("server", SERVERS)
async def test_a_server_lists_and_answers_the_same_through_the_gateway(
    place: Place, server: str, tmp_path: Path
) -> None:
    async with direct(place, server) as plain:
        tools = {tool.name: (server, tool.name) for tool in (await plain.list_tools()).tools}
        file = workspace(tmp_path, [definition_of(place, server)], tools)
        await assert_same(file, plain, place.calls(server))


@contextmanager
def everything_over_http(place: Place) -> Iterator[str]:
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    command = [*place.command("everything"), "streamableHttp"]
    environment = {"PATH": os.environ["PATH"], "PORT": str(port)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if str(port).encode() in line:
                    break
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


async def test_a_server_over_http_lists_and_answers_the_same(place: Place, tmp_path: Path) -> None:
    with everything_over_http(place) as url:
        async with Client(url) as plain:
            tools = {
                tool.name: ("everything", tool.name) for tool in (await plain.list_tools()).tools
            }
            server = {"id": "everything", "transport": "http", "endpoint": url}
            file = workspace(tmp_path, [server], tools)
            await assert_same(file, plain, place.calls("everything"))


async def test_rules_hold_across_servers(place: Place, tmp_path: Path) -> None:
    skills = {
        "look": ("filesystem", "list_directory"),
        "remember": ("memory", "create_entities"),
        "status": ("git", "git_status"),
        "commit": ("git", "git_commit"),
    }
    file = workspace(
        tmp_path,
        [definition_of(place, server) for server in ("filesystem", "git", "memory")],
        skills,
        {"commit": ["status", "remember"], "remember": ["look"]},
    )
    await anyio.Path(place.directory / "note.txt").write_text("changed\n", encoding="utf-8")
    await git(place, "add", "note.txt")
    await git(place, "config", "user.name", "a")
    await git(place, "config", "user.email", "a@example.com")
    repository = {"repo_path": str(place.directory)}
    entity = {"name": "note", "entityType": "file", "observations": ["changed"]}

    async with through(file, "auto") as client:

        async def call(skill: str, **arguments: Any) -> tuple[bool, str]:
            result = await client.call_tool(skill, arguments)
            block = result.content[0]
            assert isinstance(block, mcp_types.TextContent)
            return result.is_error, block.text

        refused, text = await call("commit", **repository, message="second")
        assert refused
        assert text.endswith("Call status, look, then remember first, then retry.")
        for skill, arguments in {
            "status": repository,
            "look": {"path": str(place.directory)},
            "remember": {"entities": [entity]},
        }.items():
            failed, _ = await call(skill, **arguments)
            assert not failed
        failed, _ = await call("commit", **repository, message="second")
        assert not failed
    assert (await git(place, "log", "--format=%s")).split() == ["second", "first"]


async def test_a_server_sees_the_variables_of_its_definition_and_a_few_common_ones(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET_OF_OURS", "do-not-tell")
    server = definition_of(place, "everything") | {"env": {"GIVEN": "yes"}}
    file = workspace(tmp_path, [server], {"env": ("everything", "get-env")})
    async with through(file, "auto") as client:
        told = str(await answer(client, "env", {}))
    assert "GIVEN" in told
    assert "do-not-tell" not in told
