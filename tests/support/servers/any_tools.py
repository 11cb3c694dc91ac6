"""An MCP server over stdio that offers the tools named in `TOOLS` and answers each with its call.

Stands in for the servers of published workspaces, which name them and do not bring them.
"""

import json
import os
import sys
from typing import Any

NAMES = os.environ["TOOLS"].split(",")


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "any-tools", "version": "1"},
            }
        case "tools/list":
            schema = {"type": "object"}
            return {"tools": [{"name": name, "inputSchema": schema} for name in NAMES]}
        case _:
            text = json.dumps([params["name"], params.get("arguments")])
            return {"content": [{"type": "text", "text": text}]}


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] in ("initialize", "tools/list", "tools/call"):
        reply["result"] = answer(message["method"], message.get("params") or {})
    else:
        reply["error"] = {"code": -32601, "message": "Method not found"}
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()
