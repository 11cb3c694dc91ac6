"""A harness in small: it finds its tools as any harness does, and needs no model.

    seriatim harness topology.yaml --agent builder -- python client.py

It wants a convention. When it is told to make another call first, it does, and tries again. What it
sees goes to stderr, and its answer to stdout.
"""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

TOLD = re.compile(r"Call ([a-z-]+) first")


async def call(client: Client, tool: str, **arguments: str) -> str:
    result = await client.call_tool(tool, arguments)
    text = "\n".join(block.text for block in result.content if block.type == "text")
    print(f"{tool}: {text}", file=sys.stderr)
    return text


async def main(server: dict[str, Any]) -> None:
    async with (
        httpx2.AsyncClient(headers=server["headers"]) as http,
        Client(streamable_http_client(server["url"], http_client=http)) as client,
    ):
        answer = await call(client, "get-build-convention", kind="console")
        if told := TOLD.search(answer):
            await call(client, told[1])
            answer = await call(client, "get-build-convention", kind="console")
    print(answer)


if __name__ == "__main__":
    file = Path(os.environ["SERIATIM_MCP_CONFIG"])
    anyio.run(main, json.loads(file.read_text(encoding="utf-8"))["mcpServers"]["seriatim"])
