"""What `init` makes of clients' files: servers, and variables in place of secrets."""

import json
from pathlib import Path
from typing import Any

import pytest

from seriatim.cli.init_source import Source, SourceError, read_source
from seriatim.topology import HttpTransport, StdioTransport

SECRETS = ["hunter2hunter2", "s3cr3t", "zzz-header", "k3y-in-url", "login:pw", "sk-abcdefghijklmn"]


def source(directory: Path, document: Any, name: str = ".mcp.json") -> Source:
    file = directory / name
    file.parent.mkdir(exist_ok=True)
    text = document if isinstance(document, str) else json.dumps(document)
    file.write_text(text, encoding="utf-8")
    return read_source(file, directory / "out")


def one(directory: Path, entry: Any, name: str = ".mcp.json") -> StdioTransport:
    (server,) = source(directory, {"mcpServers": {"x": entry}}, name).servers
    assert isinstance(server.transport, StdioTransport)
    return server.transport


def test_no_value_of_env_or_a_header_is_kept_and_all_are_there_to_connect(tmp_path: Path) -> None:
    found = source(
        tmp_path,
        {
            "mcpServers": {
                "local": {
                    "command": "run",
                    "args": [
                        "--api-key",
                        "s3cr3t",
                        "--token=s3cr3t",
                        "-e",
                        "MY_SECRET=s3cr3t",
                        "--header",
                        "Authorization: Bearer s3cr3t",
                        "sk-abcdefghijklmn",
                        "--verbose",
                        "path/to/file.txt",
                    ],
                    "env": {"PASS": "hunter2hunter2", "COUNT": 3, "NOTHING": None},
                },
                "remote": {
                    "type": "http",
                    "url": "https://login:pw@example.com/mcp?api_key=k3y-in-url&page=2",
                    "headers": {"Authorization": "Bearer zzz-header", "X-Team": "zzz-header"},
                },
            }
        },
    )
    local, remote = (server.transport for server in found.servers)
    assert isinstance(local, StdioTransport)
    assert isinstance(remote, HttpTransport)
    assert local.command == (
        "run",
        "--api-key",
        "${LOCAL_API_KEY}",
        "--token=${LOCAL_TOKEN}",
        "-e",
        "MY_SECRET=${MY_SECRET}",
        "--header",
        "Authorization: Bearer ${LOCAL_AUTHORIZATION}",
        "${LOCAL_SECRET}",
        "--verbose",
        "path/to/file.txt",
    )
    assert local.env == {"PASS": "${PASS}", "COUNT": "${COUNT}"}
    assert (
        remote.endpoint
        == "https://${REMOTE_LOGIN}@example.com/mcp?api_key=${REMOTE_API_KEY}&page=2"
    )
    assert remote.headers == {
        "Authorization": "Bearer ${REMOTE_AUTHORIZATION}",
        "X-Team": "${REMOTE_X_TEAM}",
    }
    assert not any(secret in repr(found) for secret in SECRETS)
    values = found.variables.environment({"PASS": "from outside", "HOME": "/h"})
    assert values["PASS"] == "hunter2hunter2"
    assert (values["COUNT"], values["REMOTE_LOGIN"], values["HOME"]) == ("3", "login:pw", "/h")


def test_two_servers_with_one_name_for_two_values_get_two_variables(tmp_path: Path) -> None:
    entry = {"command": "run", "env": {"KEY": "1"}}
    servers = {"a": entry, "b": entry, "c": {"command": "run", "env": {"KEY": "2"}}}
    found = source(tmp_path, {"mcpServers": servers})
    transports = [server.transport for server in found.servers]
    assert [t.env for t in transports if isinstance(t, StdioTransport)] == [
        {"KEY": "${KEY}"},
        {"KEY": "${KEY}"},
        {"KEY": "${KEY_2}"},
    ]
    assert [variable.name for variable in found.variables.all] == ["KEY", "KEY_2"]


@pytest.mark.parametrize(
    ("written", "wanted", "value"),
    [
        ("${API_TOKEN}", "${API_TOKEN}", "outside"),
        ("${env:API_TOKEN}", "${API_TOKEN}", "outside"),
        ("${API_TOKEN:-inside}", "${API_TOKEN}", "outside"),
        ("${OTHER:-inside}", "${OTHER}", "inside"),
        ("Bearer ${env:API_TOKEN}", "Bearer ${API_TOKEN}", "outside"),
        ("${input:api-token}", "${API_TOKEN}", "outside"),
        ("${userHome}", "${HOME}", "/home"),
        ("${workspaceFolder}", "${K}", "."),
        ("x-${API_TOKEN}", "${K}", "x-outside"),
    ],
)
def test_a_clients_own_references_are_ours(
    written: str, wanted: str, value: str, tmp_path: Path
) -> None:
    servers = {"x": {"command": "run", "env": {"K": written}}}
    found = source(tmp_path, {"mcpServers": servers})
    (server,) = found.servers
    assert isinstance(server.transport, StdioTransport)
    assert server.transport.env == {"K": wanted}
    (variable,) = found.variables.all
    environment = found.variables.environment({"API_TOKEN": "outside", "HOME": "/home"})
    assert environment[variable.name] == value


def test_the_folder_of_a_project_is_where_its_servers_start(tmp_path: Path) -> None:
    entry = {"command": "${workspaceFolder}/run", "args": ["${workspaceFolder}"]}
    for name in (".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json"):
        transport = one(tmp_path, entry, name)
        assert (transport.command, transport.cwd) == (("./run", "."), str(tmp_path))
    assert one(tmp_path, {**entry, "cwd": "sub"}).cwd == str(tmp_path / "sub")
    assert one(tmp_path, {**entry, "cwd": "${env:HOME}/x"}).cwd == "${HOME}/x"
    anywhere = one(tmp_path, {"command": "run"}, "claude_desktop_config.json")
    assert anywhere.cwd == str(tmp_path / "out")


def test_vs_code_has_comments_servers_and_inputs(tmp_path: Path) -> None:
    text = """
    {
      // asked once
      "inputs": [{"type": "promptString", "id": "gh-key", "description": "Your key"}],
      "servers": {
        "GitHub": {"url": "https://x/mcp", "headers": {"X-Key": "${input:gh-key}"}},
      }, /* that is all */
    }
    """
    found = source(tmp_path, text, ".vscode/mcp.json")
    (server,) = found.servers
    assert server.id == "git-hub"
    assert server.transport == HttpTransport("https://x/mcp", {"X-Key": "${GH_KEY}"})
    assert [(each.name, each.whence) for each in found.variables.all] == [("GH_KEY", "Your key")]


def test_what_cannot_be_used_is_left_out_and_says_why(tmp_path: Path) -> None:
    servers = {
        "sse": {"type": "sse", "url": "http://x"},
        "off": {"command": "x", "disabled": True},
        "none": {"args": ["x"]},
        "odd": 3,
        "fine": {"command": "x", "args": None, "env": []},
    }
    found = source(tmp_path, {"mcpServers": servers})
    assert [server.id for server in found.servers] == ["fine"]
    assert [(each.name, each.on_purpose) for each in found.left_out] == [
        ("sse", False),
        ("off", True),
        ("none", False),
        ("odd", False),
    ]


def test_servers_whose_names_come_to_the_same_have_ids_of_their_own(tmp_path: Path) -> None:
    entry = {"command": "x"}
    found = source(tmp_path, {"mcpServers": {"My Files": entry, "my-files": entry, "検": entry}})
    assert [server.id for server in found.servers] == ["my-files", "my-files-2", "server"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is no JSON"),
        ("[1]", "is no JSON: it holds no object"),
        ('{"a" 1}', "is no JSON"),
        ("{}", "names no servers"),
        ('{"mcpServers": []}', "names no servers"),
    ],
)
def test_a_file_that_is_none_says_so(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=problem):
        source(tmp_path, text)


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file or directory"):
        read_source(tmp_path / "none.json", tmp_path)
