"""`seriatim gateway --print-config`: what each client's file has to hold."""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from typer.testing import CliRunner

from seriatim.cli.app import app
from tests.support.gateways import BOB, write_workspace

CLIENTS = ["claude-code", "codex", "gemini", "opencode", "cursor", "vscode", "json"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_workspace(tmp_path)


def printed(path: Path, client: str, *more: str) -> Result:
    arguments = ["gateway", str(path), "--agent", "bob", "--print-config", client, *more]
    return CliRunner().invoke(app, arguments)


def parsed(result: Result, client: str) -> Any:
    assert result.exit_code == 0, result.stderr
    return tomllib.loads(result.stdout) if client == "codex" else json.loads(result.stdout)


def stdio(path: Path) -> dict[str, Any]:
    arguments = ["-m", "seriatim", "gateway", str(path), "--agent", "bob"]
    return {"command": sys.executable, "args": [*arguments, "--topology", "pair"]}


def test_each_client_gets_the_command_in_its_own_shape(path: Path) -> None:
    given = stdio(path)
    seen = {
        client: parsed(printed(path, client, "--topology", "pair"), client) for client in CLIENTS
    }
    assert seen == {
        "claude-code": {"mcpServers": {"seriatim": given}},
        "codex": {"mcp_servers": {"seriatim": given}},
        "gemini": {"mcpServers": {"seriatim": given}},
        "opencode": {
            "$schema": "https://opencode.ai/config.json",
            "mcp": {
                "servers": {
                    "seriatim": {"type": "local", "command": [given["command"], *given["args"]]}
                }
            },
        },
        "cursor": {"mcpServers": {"seriatim": {"type": "stdio", **given}}},
        "vscode": {"servers": {"seriatim": {"type": "stdio", **given}}},
        "json": {"mcpServers": {"seriatim": given}},
    }
    assert not (path.parent / "pids").exists()


URL = "http://127.0.0.1:8080/mcp"


def test_each_client_gets_the_url_and_its_own_place_for_the_token(path: Path) -> None:
    seen = {
        client: parsed(printed(path, client, "--http", "127.0.0.1:8080"), client)
        for client in CLIENTS
    }

    def header(reference: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {reference}"}

    plain = {"type": "http", "url": URL, "headers": header("${SERIATIM_TOKEN}")}
    assert seen == {
        "claude-code": {"mcpServers": {"seriatim": plain}},
        "codex": {
            "mcp_servers": {"seriatim": {"url": URL, "bearer_token_env_var": "SERIATIM_TOKEN"}}
        },
        "gemini": {
            "mcpServers": {"seriatim": {"httpUrl": URL, "headers": header("${SERIATIM_TOKEN}")}}
        },
        "opencode": {
            "$schema": "https://opencode.ai/config.json",
            "mcp": {
                "servers": {
                    "seriatim": {
                        "type": "remote",
                        "url": URL,
                        "headers": header("{env:SERIATIM_TOKEN}"),
                        "oauth": False,
                    }
                }
            },
        },
        "cursor": {
            "mcpServers": {"seriatim": {"url": URL, "headers": header("${env:SERIATIM_TOKEN}")}}
        },
        "vscode": {
            "inputs": [
                {
                    "type": "promptString",
                    "id": "seriatim-token",
                    "description": "The bearer token that the gateway prints",
                    "password": True,
                }
            ],
            "servers": {
                "seriatim": {
                    "type": "http",
                    "url": URL,
                    "headers": header("${input:seriatim-token}"),
                }
            },
        },
        "json": {"mcpServers": {"seriatim": plain}},
    }


def test_the_talk_says_where_the_snippet_goes(path: Path) -> None:
    assert printed(path, "vscode").stderr == "put it into `.vscode/mcp.json` in the project\n"
    over_http = printed(path, "codex", "--http", "127.0.0.1:8080")
    assert over_http.stderr == (
        "put it into `~/.codex/config.toml`, and set `SERIATIM_TOKEN` to the token that the "
        "gateway prints\n"
    )


def test_what_toml_and_json_write_differently_is_written_as_each_wants(tmp_path: Path) -> None:
    odd = tmp_path / 'a "quoted" \\ ünïcode \x7f\tname'
    odd.mkdir()
    path = write_workspace(odd)
    for client in ("codex", "json"):
        (entry,) = next(iter(parsed(printed(path, client), client).values())).values()
        assert entry["args"][3] == str(path)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_client_in_another_directory_starts_the_gateway_with_it(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    result = printed(Path(path.name), "json", "--audit", "log.sqlite3")
    entry = parsed(result, "json")["mcpServers"]["seriatim"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    parameters = StdioServerParameters(**entry, cwd=elsewhere)
    with (tmp_path / "stderr").open("w") as stderr:
        async with Client(stdio_client(parameters, errlog=stderr)) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == BOB
    assert (path.parent / "log.sqlite3").exists()


def test_a_wildcard_is_reached_by_loopback(path: Path) -> None:
    result = printed(path, "cursor", "--http", "[::]:8080")
    assert '"http://[::1]:8080/mcp"' in result.stdout


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (["--http", "127.0.0.1:0"], "port 0 is another one each time"),
        (["--http", "127.0.0.1:80", "--agent", "ada"], "a client has one agent"),
        (["--agent", "ada"], "over stdio a gateway serves one agent"),
        (["--topology", "none"], "the workspace has no topology `none`"),
    ],
)
def test_wrong_usage_ends_with_2_and_prints_nothing(
    more: list[str], problem: str, path: Path
) -> None:
    result = printed(path, "json", *more)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {problem}")
