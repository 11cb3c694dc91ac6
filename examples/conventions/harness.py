"""A harness in small: a real MCP client that is given a gateway's command.

    python harness.py seriatim gateway . --topology ordered --agent builder

It wants a convention. When it is told to make another call first, it does, and tries again.
What it sees is printed, one JSON object a line.
"""

import json
import os
import re
import sys

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

TOLD = re.compile(r"Call ([a-z_-]+)")
ACK = re.compile(r"^ack: (\S+)$", re.MULTILINE)


class Harness:
    def __init__(self, client: Client, takes_ack: bool) -> None:
        self.client = client
        self.takes_ack = takes_ack
        self.ack = ""

    async def call(self, tool: str, **arguments: str) -> str:
        """Call a tool, and return what it says must come first, or nothing."""
        sent = arguments | ({"ack": self.ack} if self.takes_ack else {})
        result = await self.client.call_tool(tool, sent)
        text = "\n".join(block.text for block in result.content if block.type == "text")
        report(call=tool, is_error=result.is_error, text=text)
        self.ack = next(iter(ACK.findall(text)), self.ack)
        return next(iter(TOLD.findall(text)), "") if result.is_error else ""


def report(**seen: object) -> None:
    print(json.dumps(seen), flush=True)


async def main(command: list[str]) -> None:
    gateway = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with Client(stdio_client(gateway)) as client:
        tools = (await client.list_tools()).tools
        arguments = {tool.name: list(tool.input_schema.get("properties", {})) for tool in tools}
        report(tools=arguments)
        harness = Harness(client, any("ack" in names for names in arguments.values()))
        if first := await harness.call("get-build-convention", kind="console"):
            await harness.call(first.replace("_", "-"))
            await harness.call("get-build-convention", kind="console")


if __name__ == "__main__":
    anyio.run(main, sys.argv[1:])
