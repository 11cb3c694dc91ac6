"""A harness without a model: finds its MCP server as a real one does, and calls two tools.

`fake_harness.py KIND ARGUMENTS...`; KIND is `claude`, `codex`, `gemini`, `opencode` or `any`. Reads
what the real program reads, in that program's shape, and nothing else. Of its own arguments:
`--tell FILE` writes what it was given there, `--exit N` ends with N, and `--wait` says what signals
it gets, until SIGTERM ends it with 42.
With a task on stdin (its real flag for that given) it answers with the task and what it called.
"""

import json
import os
import signal
import stat
import sys
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

TASK_FLAGS = {"claude": "--print", "codex": "exec", "gemini": "--skip-trust", "opencode": "run"}


def found(kind: str, arguments: list[str]) -> tuple[str, dict[str, str], list[Path]]:
    """Return the URL and the headers of the server, and the files that were read for them."""
    match kind:
        case "claude":
            assert "--strict-mcp-config" in arguments
            assert "--allowedTools=mcp__seriatim__*" in arguments
            (option,) = (word for word in arguments if word.startswith("--mcp-config="))
            file = Path(option.removeprefix("--mcp-config="))
            entry = read(file)["mcpServers"]["seriatim"]
            assert entry["type"] == "http"
            return entry["url"], entry["headers"], [file]
        case "codex":
            overrides = [value for flag, value in pairwise(arguments) if flag == "-c"]
            entry = tomllib.loads("\n".join(overrides))["mcp_servers"]["seriatim"]
            assert entry["default_tools_approval_mode"] == "approve"
            token = os.environ[entry["bearer_token_env_var"]]
            return entry["url"], {"Authorization": f"Bearer {token}"}, []
        case "gemini":
            file = Path(os.environ["GEMINI_CLI_HOME"]) / ".gemini" / "settings.json"
            settings = read(file)
            assert settings["mcp"]["allowed"] == list(settings["mcpServers"]) == ["seriatim"]
            entry = settings["mcpServers"]["seriatim"]
            assert entry["trust"] is True
            return entry["httpUrl"], entry["headers"], [file]
        case "opencode":
            file = Path(os.environ["OPENCODE_CONFIG"])
            entry = read(file)["mcp"]["servers"]["seriatim"]
            assert (entry["type"], entry["oauth"]) == ("remote", False)
            return entry["url"], entry["headers"], [file]
        case _:
            file = Path(os.environ["SERIATIM_MCP_CONFIG"])
            entry = read(file)["mcpServers"]["seriatim"]
            assert entry["url"] == os.environ["SERIATIM_URL"]
            token = os.environ["SERIATIM_TOKEN"]
            assert entry["headers"] == {"Authorization": f"Bearer {token}"}
            return entry["url"], entry["headers"], [file]


def read(file: Path) -> Any:
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    return json.loads(file.read_text(encoding="utf-8"))


async def call(url: str, headers: dict[str, str]) -> dict[str, Any]:
    """Call the second tool, then the first, then the second again."""
    async with httpx2.AsyncClient(headers=headers) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode="legacy") as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            first, second = names[:2]
            texts = []
            for name in (second, first, second):
                block = (await client.call_tool(name, {"kind": "console"})).content[0]
                assert isinstance(block, mcp_types.TextContent)
                texts.append(block.text)
            return {"tools": names, "texts": texts}


def main() -> None:
    kind, *arguments = sys.argv[1:]
    url, headers, files = found(kind, arguments)
    token = headers["Authorization"].removeprefix("Bearer ")
    seen = anyio.run(call, url, headers)
    given = {"arguments": arguments, "files": [str(file) for file in files], "url": url}
    given |= {"token": token, "cwd": str(Path.cwd()), **seen}
    if "--tell" in arguments:
        file = Path(arguments[arguments.index("--tell") + 1])
        file.write_text(json.dumps(given), encoding="utf-8")
    task = sys.stdin.read() if TASK_FLAGS.get(kind) in arguments or "--task" in arguments else ""
    sys.stderr.write("thinking\n")
    if "--wait" in arguments:
        wait()
    say(f"{task.strip()}: {seen['texts'][-1]}" if task else json.dumps(seen["texts"]))
    sys.exit(int(arguments[arguments.index("--exit") + 1]) if "--exit" in arguments else 0)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def wait() -> None:
    say("ready")
    while True:
        received = signal.sigwait(WAITED)
        say(f"got {received.name}")
        if received is signal.SIGTERM:
            sys.exit(42)


WAITED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGWINCH}

if __name__ == "__main__":
    if "--wait" in sys.argv:
        signal.pthread_sigmask(signal.SIG_BLOCK, WAITED)
    main()
