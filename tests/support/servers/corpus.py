"""Gives results byte by byte, in either era of MCP, over stdio or streamable HTTP.

Standard library only, so that nothing between the corpus and the wire changes it. Arguments: the
era (`legacy` or `modern`), and `--http` to listen on a free port of 127.0.0.1, whose URL is then
printed. `NOTES` names a file that gets one line for each call that was cancelled.
"""

import itertools
import json
import os
import select
import socket
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import corpus_shelf
from corpus_cases import ERRORS, ODD_NAMES, TOOLS, large_text, result_text

Json = dict[str, Any]
Send = Callable[[str], None]

ERA = sys.argv[1]
NAME = f"{ERA}-{'http' if '--http' in sys.argv else 'stdio'}"
CAN = {"tools": {}, "resources": {}, "prompts": {}, "completions": {}}
MODERN = "2026-07-28"
INFO = {"name": "corpus", "version": "1"}
ASKED: dict[str, Json] = {
    "elicitation": {
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": "name?",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
        },
    },
    "sampling": {
        "method": "sampling/createMessage",
        "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
            "maxTokens": 5,
        },
    },
    "roots": {"method": "roots/list", "params": {}},
}


class FaultError(Exception):
    """Becomes a JSON-RPC error."""

    def __init__(self, error: Json) -> None:
        super().__init__(error["message"])
        self.error = error


class Call:
    """One call on its way."""

    def __init__(self, params: Json, send: Send, gone: Callable[[], bool]) -> None:
        self.params = params
        self.arguments: Json = params.get("arguments") or {}
        self.meta: Json = params.get("_meta") or {}
        self.send = send
        self.cancelled = threading.Event()
        self._gone = gone

    def given_up(self) -> bool:
        """Wait a moment, and return whether the client has given the call up."""
        return self.cancelled.wait(0.005) or self._gone()

    def report(self, step: Json) -> None:
        if "progressToken" in self.meta:
            params = {"progressToken": self.meta["progressToken"], **step}
            self.send(_notification("notifications/progress", params))


class Server:
    """Answers messages, whichever way they come."""

    def __init__(self) -> None:
        self._running: dict[Any, Call] = {}
        self._numbers = itertools.count(1)
        self._answers: dict[str, tuple[threading.Event, list[Json]]] = {}
        self.can_ask: Json = {}

    def notified(self, message: Json) -> None:
        if message["method"] == "notifications/cancelled":
            call = self._running.get(message["params"]["requestId"])
            if call is not None:
                call.cancelled.set()

    def answered(self, message: Json) -> None:
        event, box = self._answers[message["id"]]
        box.append(message)
        event.set()

    def request(self, message: Json, send: Send, gone: Callable[[], bool]) -> str | None:
        """Return the answer to a request, or nothing for one that was given up.

        `send` sends what comes before it.
        """
        id_, params = message["id"], message.get("params") or {}
        call = self._running[id_] = Call(params, send, gone)
        try:
            result = self._result(message["method"], params, call)
        except FaultError as fault:
            return json.dumps({"jsonrpc": "2.0", "id": id_, "error": fault.error})
        finally:
            del self._running[id_]
        if result is None:
            return None
        return f'{{"jsonrpc":"2.0","id":{json.dumps(id_)},"result":{_stamped(result)}}}'

    def _result(self, method: str, params: Json, call: Call) -> str | None:
        match method:
            case "initialize" if ERA == "legacy":
                self.can_ask = params["capabilities"]
                hello = {"protocolVersion": "2025-11-25", "capabilities": CAN}
                return json.dumps(hello | {"serverInfo": INFO})
            case "server/discover" if ERA == "modern":
                hello = {"supportedVersions": [MODERN], "capabilities": CAN}
                return json.dumps(hello | {"ttlMs": 0, "cacheScope": "private"})
            case "ping":
                return "{}"
            case "tools/list":
                page = int(params.get("cursor") or 0)
                listing: Json = {"tools": TOOLS[page : page + 4]}
                if page + 4 < len(TOOLS):
                    listing["nextCursor"] = str(page + 4)
                if ERA == "modern":
                    listing |= {"ttlMs": 0, "cacheScope": "private"}
                return json.dumps(listing)
            case "tools/call":
                return self._called(params["name"], call)
        found = corpus_shelf.answer(NAME, method, params)
        if found is None:
            raise FaultError({"code": -32601, "message": f"{NAME} does not know {method} {params}"})
        fresh = {"ttlMs": 0, "cacheScope": "private"} if ERA == "modern" else {}
        return json.dumps(found | fresh)

    def _called(self, name: str, call: Call) -> str | None:
        match name:
            case "give" | "fixed" | "typed":
                return result_text(call.arguments.get("case", "text"))
            case "fault":
                raise FaultError(ERRORS[call.arguments["case"]])
            case "large":
                return _text(large_text(call.arguments["bytes"]))
            case "echo":
                return _text(json.dumps({"arguments": call.arguments, "meta": call.meta}))
            case "steps":
                for step in range(call.arguments["steps"]):
                    call.report({"progress": step + 0.5, "total": 1e3, "message": f"ü {step}"})
                call.report({"progress": call.arguments["steps"]})
                return _text("done")
            case "wait":
                return self._wait(call)
            case "ask":
                return self._ask(call.arguments["for"], call)
            case odd if odd in ODD_NAMES:
                return _text(json.dumps(odd))
        raise FaultError({"code": -32602, "message": f"Unknown tool: {name}"})

    def _wait(self, call: Call) -> str | None:
        until = call.arguments.get("until")
        if started := call.arguments.get("started"):
            Path(started).touch()
        # So that a client over HTTP has an answer that it can leave.
        call.report({"progress": 1})
        while not call.given_up():
            if until and Path(until).exists():
                return _text("done")
        if notes := os.environ.get("NOTES"):
            with Path(notes).open("a", encoding="utf-8") as file:
                file.write("cancelled\n")
        return None

    def _ask(self, what: str, call: Call) -> str:
        """Ask the client in the way of the era, and return what it said."""
        if ERA == "modern":
            can = call.meta["io.modelcontextprotocol/clientCapabilities"]
            if what not in can:
                return _text(f"the client declares {sorted(can)}")
            if "inputResponses" not in call.params:
                asked = {"inputRequests": {"q": ASKED[what]}, "requestState": "round 1"}
                return json.dumps({"resultType": "input_required", **asked})
            answer = {"result": call.params["inputResponses"]["q"]}
            answer["state"] = call.params["requestState"]
            return _text(json.dumps(answer, sort_keys=True))
        if what not in self.can_ask:
            return _text(f"the client declares {sorted(self.can_ask)}")
        id_ = f"ask-{next(self._numbers)}"
        event, box = self._answers[id_] = threading.Event(), []
        call.send(json.dumps({"jsonrpc": "2.0", "id": id_, **ASKED[what]}))
        while not event.is_set():
            if call.given_up():
                return _text("given up")
        answer = {key: value for key, value in box[0].items() if key not in ("id", "jsonrpc")}
        return _text(json.dumps(answer, sort_keys=True))


def _text(text: str) -> str:
    return json.dumps({"content": [{"type": "text", "text": text}]}, ensure_ascii=False)


def _stamped(result: str) -> str:
    """Return a result with what the newest protocol wants of every result."""
    if ERA == "legacy" or result.startswith('{"resultType"'):
        return result
    return '{"resultType":"complete"' + ("," if result != "{}" else "") + result[1:]


def _notification(method: str, params: Json) -> str:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params})


def over_stdio(server: Server) -> None:
    lock = threading.Lock()

    def send(text: str) -> None:
        with lock:
            sys.stdout.buffer.write(text.encode() + b"\n")
            sys.stdout.buffer.flush()

    def answer(message: Json) -> None:
        if text := server.request(message, send, lambda: False):
            send(text)

    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "method" not in message:
            server.answered(message)
        elif "id" not in message:
            server.notified(message)
        else:
            threading.Thread(target=answer, args=(message,), daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_of_all = Server()

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._empty(405)

    def do_DELETE(self) -> None:
        self._empty(405)

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "method" not in message:
            self.server_of_all.answered(message)
            self._empty(202)
        elif "id" not in message:
            self.server_of_all.notified(message)
            self._empty(202)
        else:
            self._answer(message)

    def _empty(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _answer(self, message: Json) -> None:
        """Answer as one body, or as a stream when something comes before the answer."""
        streaming = False

        def send(text: str) -> None:
            nonlocal streaming
            if not streaming:
                streaming = True
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
            self._chunk(f"event: message\ndata: {text}\n\n".encode())

        text = self.server_of_all.request(message, send, self._gone)
        if text is None:
            self.close_connection = True
        elif streaming:
            send(text)
            self._chunk(b"")
        else:
            body = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _gone(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)


def over_http() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listener:
        listener.daemon_threads = True
        url = f"http://127.0.0.1:{listener.server_port}/mcp"
        print(url, flush=True)  # noqa: T201  the port is this program's output
        listener.serve_forever()


if __name__ == "__main__":
    if "--http" in sys.argv:
        over_http()
    else:
        over_stdio(Server())
