"""Real MCP servers for tests: their definitions, and what reached them."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from interceptors import Tier
from seriatim.topology.models import HttpTransport, ServerDefinition, StdioTransport, Transport

SERVERS = Path(__file__).parent / "servers"
NOTHING: Mapping[str, str] = MappingProxyType({})


def definition(server: str, transport: Transport, tier: Tier = Tier.CAUTIOUS) -> ServerDefinition:
    return ServerDefinition(server, transport, tier, tool_tiers={}, effects={})


def stdio_server(
    server: str,
    script: str = "counting",
    *arguments: str,
    env: Mapping[str, str] = NOTHING,
    tier: Tier = Tier.CAUTIOUS,
) -> ServerDefinition:
    """Define a server that runs a script of `servers/`."""
    command = (sys.executable, str(SERVERS / f"{script}.py"), *arguments)
    return definition(server, StdioTransport(command, env, "."), tier)


@contextmanager
def http_server(
    token: str = "", env: Mapping[str, str] = NOTHING, port: str = "0"
) -> Iterator[str]:
    """Run the SDK's server over streamable HTTP; gives its endpoint."""
    command = [
        sys.executable,
        str(SERVERS / "sdk.py"),
        "--http",
        *(["--token", token] * bool(token)),
        *("--port", port),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(env)) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def http_definition(
    server: str, endpoint: str, headers: Mapping[str, str] = NOTHING
) -> ServerDefinition:
    return definition(server, HttpTransport(endpoint, headers))


def calls(path: Path) -> list[dict[str, Any]]:
    """Return what reached a server that was given `path` as its `CALLS_FILE`."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
