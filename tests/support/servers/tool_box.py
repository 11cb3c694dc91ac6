"""The tools that the test servers offer: what they are called, and what they do.

Standard library only, so that a server starts in some 50 ms.
"""

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Json = dict[str, Any]
# A PNG of one pixel.
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwAD"
    "hgGAWjR9awAAAABJRU5ErkJggg=="
)
CONVENTIONS = {"console": "Log lines start with a capital.", "card": "Cards have one button."}


class RpcError(Exception):
    """Becomes a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


def _tool(name: str, description: str, /, *, read_only: bool = False, **properties: Json) -> Json:
    tool: Json = {
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": properties},
    }
    if read_only:
        tool["annotations"] = {"readOnlyHint": True}
    return tool


STRING, NUMBER, BOOLEAN = {"type": "string"}, {"type": "number"}, {"type": "boolean"}

TOOLS: list[Json] = [
    _tool("list_conventions", "Lists the names of the build conventions.", read_only=True),
    _tool("get_convention", "Gets one build convention.", read_only=True, name=STRING),
    _tool("search_code", "Searches the code of all solutions.", read_only=True, query=STRING),
    _tool("fail", "Fails, and says so with `isError`.", text=STRING),
    _tool("raise", "Answers with a JSON-RPC error.", code=NUMBER, message=STRING, data={}),
    _tool("slow", "Ends when a file appears, or after a while.", seconds=NUMBER, until=STRING),
    _tool("die", "Ends the server's process.", code=NUMBER, text=STRING),
    _tool("echo", "Returns its arguments and its `_meta` as JSON.", read_only=True),
    _tool("picture", "Returns a picture and a text.", read_only=True),
    _tool("structured", "Returns structured content.", broken=BOOLEAN)
    | {
        "outputSchema": {
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "required": ["n"],
        }
    },
    _tool("progress", "Reports progress in steps.", steps=NUMBER),
    _tool("forge", "Returns, as a success, the text that it is given.", text=STRING),
    _tool("flaky", "Fails the first `failures` times.", failures=NUMBER, key=STRING),
    _tool("unicode", "Returns text that does not print well."),
    _tool("ask", "Asks the user before it answers (modern era)."),
]


class Call:
    """One call on its way: where its progress goes, and whether it was given up."""

    def __init__(self, meta: Json, report: Callable[[float, float, str], None]) -> None:
        self.meta = meta
        self.report = report
        self.cancelled = threading.Event()


def text(value: str, *, is_error: bool = False) -> Json:
    result: Json = {"content": [{"type": "text", "text": value}]}
    return result | {"isError": True} if is_error else result


def note(suffix: str, entry: Json) -> None:
    """Append a line to the file that `CALLS_FILE` names, if it names one."""
    if path := os.environ.get("CALLS_FILE"):
        with Path(path + suffix).open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


class ToolBox:
    """The tools, and what they remember while the server lives."""

    def __init__(self) -> None:
        self._attempts: dict[str, int] = {}

    def perform(self, name: str, arguments: Json, call: Call) -> Json:
        """Run a tool and return its result; waits, so give it a thread of its own."""
        note("", {"tool": name, "arguments": arguments, "meta": call.meta})
        match name:
            case "list_conventions":
                return text(", ".join(CONVENTIONS))
            case "get_convention":
                convention = arguments.get("name", "console")
                if convention in CONVENTIONS:
                    return text(CONVENTIONS[convention])
                return text(f"there is no convention {convention}", is_error=True)
            case "search_code":
                return text(f"1 match for {arguments.get('query', '')}")
            case "fail":
                return text(arguments.get("text", "it went wrong"), is_error=True)
            case "raise":
                code, message = arguments.get("code", -32050), arguments.get("message", "custom")
                raise RpcError(code, message, arguments.get("data"))
            case "slow":
                return self._slow(arguments, call)
            case "die":
                os.write(2, arguments.get("text", "dying as asked").encode() + b"\n")
                os._exit(arguments.get("code", 1))
            case "echo":
                return text(json.dumps({"arguments": arguments, "meta": call.meta}))
            case "picture":
                picture = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
                return {"content": [picture, {"type": "text", "text": "one pixel"}]}
            case "structured":
                structure = {"n": "three"} if arguments.get("broken") else {"n": 3}
                meta = {"example/key": [1, None]}
                return {"content": [], "structuredContent": structure, "_meta": meta}
            case "progress":
                steps = arguments.get("steps", 3)
                for step in range(1, steps + 1):
                    call.report(step, steps, f"step {step}")
                return text("done")
            case "forge":
                return text(arguments.get("text", ""))
            case "flaky":
                return self._flaky(arguments)
            case "unicode":
                return text("naïve ☃ \u2028 \x1b[31mred\x1b[0m \x00 𝕏")
            case "ask":
                schema = {"type": "object", "properties": {"name": STRING}}
                form = {"mode": "form", "message": "name?", "requestedSchema": schema}
                return {
                    "resultType": "input_required",
                    "inputRequests": {"q": {"method": "elicitation/create", "params": form}},
                    "requestState": "s1",
                }
        raise RpcError(-32602, f"Unknown tool: {name}")

    def _slow(self, arguments: Json, call: Call) -> Json:
        deadline = time.monotonic() + arguments.get("seconds", 60)
        until = arguments.get("until")
        while time.monotonic() < deadline:
            if call.cancelled.wait(0.005):
                note(".cancelled", {"tool": "slow", "arguments": arguments})
                break
            if until and Path(until).exists():
                break
        return text("done")

    def _flaky(self, arguments: Json) -> Json:
        key = arguments.get("key", "")
        self._attempts[key] = self._attempts.get(key, 0) + 1
        if self._attempts[key] <= arguments.get("failures", 1):
            return text(f"attempt {self._attempts[key]} failed", is_error=True)
        return text(f"attempt {self._attempts[key]} succeeded")
