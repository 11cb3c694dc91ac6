"""The workhorse: an MCP server over stdio, written by hand so that it starts in some 50 ms.

Environment: `CALLS_FILE` gets one JSON line a call (tool, arguments, meta), and the same name with
`.cancelled` one line for each `slow` that was cancelled. `ERA` is `both` (default), `legacy`
(handshake only) or `modern` (no handshake). `PROBE` says what a legacy server does when it is asked
for a method that it does not know: `error` (default), `hang` or `exit`. `PAGE` is the number of
tools on one page of `tools/list`. `CHANGES_FILE` names a file
that holds, once it is there, changes to the tools: fields by the tool's name, null for a tool that
is not there; or the word `broken`. `TELL` makes the server tell its client when the file changes.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tool_box import TOOLS, Call, Json, RpcError, ToolBox

ERA = os.environ.get("ERA", "both")
PROBE = os.environ.get("PROBE", "error")
PAGE = int(os.environ.get("PAGE", str(len(TOOLS))))
CHANGES = Path(os.environ.get("CHANGES_FILE", "/nowhere"))
TELL = "TELL" in os.environ
MODERN = "2026-07-28"
HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
INFO: Json = {"name": "counting", "version": "1"}
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"


def tools() -> list[Json]:
    text = CHANGES.read_text() if CHANGES.exists() else "{}"
    if text == "broken":
        raise RpcError(-32603, "the tools cannot be listed")
    changes = json.loads(text)
    listed = [tool | (changes.get(tool["name"], {}) or {}) for tool in TOOLS]
    gone = {name for name, change in changes.items() if change is None}
    return [tool for tool in listed if tool["name"] not in gone]


class Server:
    def __init__(self) -> None:
        self._subscriptions: list[Any] = []
        self._box = ToolBox()
        self._output = threading.Lock()
        self._running: dict[Any, Call] = {}

    def serve(self) -> None:
        if TELL:
            threading.Thread(target=self._tell, daemon=True).start()
        for line in sys.stdin.buffer:
            message = json.loads(line)
            method, params = message.get("method"), message.get("params") or {}
            if method == "notifications/cancelled":
                if call := self._running.get(params.get("requestId")):
                    call.cancelled.set()
            elif "id" in message and method is not None:
                self._request(message["id"], method, params)

    def _request(self, id_: Any, method: str, params: Json) -> None:
        if method == "tools/call":
            # Registered before the thread starts, so that a cancellation finds it.
            call = self._running[id_] = Call(*self._context(params))
            threading.Thread(
                target=self._answer, args=(id_, method, params, call), daemon=True
            ).start()
        else:
            self._answer(id_, method, params, Call({}, lambda *_: None))

    def _tell(self) -> None:
        told = ""
        while True:
            time.sleep(0.02)
            text = CHANGES.read_text() if CHANGES.exists() else ""
            if text != told:
                told = text
                stamps = [{"_meta": {SUBSCRIPTION_KEY: id_}} for id_ in self._subscriptions]
                for params in stamps or [{}]:
                    method = "notifications/tools/list_changed"
                    self._send({"method": method, "params": params})

    def _context(self, params: Json) -> Any:
        meta = params.get("_meta") or {}
        token = meta.get("progressToken")

        def report(done: float, total: float, message: str) -> None:
            if token is not None:
                progress = {
                    "progressToken": token,
                    "progress": done,
                    "total": total,
                    "message": message,
                }
                self._send({"method": "notifications/progress", "params": progress})

        return meta, report

    def _answer(self, id_: Any, method: str, params: Json, call: Call) -> None:
        modern = (params.get("_meta") or {}).get(VERSION_KEY) == MODERN
        if method == "subscriptions/listen":
            self._subscriptions.append(id_)
            params = {"notifications": {"toolsListChanged": True}, "_meta": {SUBSCRIPTION_KEY: id_}}
            self._send({"method": "notifications/subscriptions/acknowledged", "params": params})
            return
        try:
            result = self._result(method, params, call)
        except RpcError as error:
            body: Json = {"code": error.code, "message": error.message}
            if error.data is not None:
                body["data"] = error.data
            self._send({"id": id_, "error": body})
            return
        finally:
            self._running.pop(id_, None)
        if modern:
            stamp = {"io.modelcontextprotocol/serverInfo": INFO}
            result = {"resultType": "complete"} | result
            result["_meta"] = (result.get("_meta") or {}) | stamp
        if not call.cancelled.is_set():
            self._send({"id": id_, "result": result})

    def _result(self, method: str, params: Json, call: Call) -> Json:
        match method:
            case "initialize" if ERA != "modern":
                asked = params.get("protocolVersion")
                return {
                    "protocolVersion": asked if asked in HANDSHAKE else HANDSHAKE[-1],
                    "capabilities": {"tools": {"listChanged": TELL}},
                    "serverInfo": INFO,
                }
            case "server/discover" if ERA != "legacy":
                return {
                    "supportedVersions": [MODERN],
                    "capabilities": {"tools": {"listChanged": TELL}},
                    "ttlMs": 0,
                    "cacheScope": "private",
                }
            case "ping":
                return {}
            case "tools/list":
                start = int(params.get("cursor") or 0)
                listed = tools()
                page: Json = {"tools": listed[start : start + PAGE]}
                if start + PAGE < len(listed):
                    page["nextCursor"] = str(start + PAGE)
                if ERA != "legacy" and VERSION_KEY in (params.get("_meta") or {}):
                    page |= {"ttlMs": 0, "cacheScope": "private"}
                return page
            case "tools/call":
                return self._box.perform(params["name"], params.get("arguments") or {}, call)
        if PROBE == "exit":
            os.write(2, f"unexpected method {method}\n".encode())
            os._exit(1)
        if PROBE == "hang":
            # Answers nothing to this request and goes on with the next.
            call.cancelled.set()
            return {}
        raise RpcError(-32601, f"Method not found: {method}")

    def _send(self, message: Json) -> None:
        line = json.dumps({"jsonrpc": "2.0"} | message)
        with self._output:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    if delay := os.environ.get("START_DELAY"):
        time.sleep(float(delay))
    Server().serve()
