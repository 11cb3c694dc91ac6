"""MCP clients that show the wire: every message as the JSON that came, through no model."""

import itertools
import json
import queue
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Protocol

import httpx2
from mcp.shared.inbound import encode_header_value

Json = dict[str, Any]
Era = Literal["legacy", "modern"]
Answerer = Callable[[Json], Json]
"""Answers a request of the server's; returns the members `result` or `error`."""

MODERN = "2026-07-28"
HANDSHAKE = "2025-11-25"
PLENTY = 60.0


def unasked(message: Json) -> Json:
    """Refuse what a server asks."""
    return {"error": {"code": -32601, "message": f"nobody answers {message['method']}"}}


class RawClient(Protocol):
    """Sends requests of one era and gives what comes back.

    Attributes:
        notified: the notifications that came, in order.
        introduction: what the server said of itself.
    """

    notified: list[Json]
    introduction: Json

    def request(self, method: str, params: Json, **meta: Any) -> Json:
        """Return the answer's message; `meta` goes into `_meta`."""
        ...

    def give_up(self, method: str, params: Json, when: Callable[[], bool]) -> None:
        """Send a request and give it up in the way of the era, once `when` holds."""
        ...


def _with_meta(era: Era, params: Json, meta: Json, capabilities: Json) -> Json:
    envelope: Json = dict(meta)
    if era == "modern":
        envelope |= {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }
    return {**params, "_meta": envelope} if envelope else params


def _hello(capabilities: Json) -> Json:
    client = {"name": "raw", "version": "0"}
    return {"protocolVersion": HANDSHAKE, "capabilities": capabilities, "clientInfo": client}


class RawStdio:
    """Speaks to a process, one line a message."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", era: Era, capabilities: Json, answerer: Answerer
    ) -> None:
        self._process = process
        self._era: Era = era
        self._capabilities = capabilities
        self._answerer = answerer
        self._ids = itertools.count(1)
        self._answers: dict[int, queue.Queue[Json]] = {}
        self.notified: list[Json] = []
        threading.Thread(target=self._read, daemon=True).start()
        hello = ("initialize", _hello(capabilities))
        method, params = hello if era == "legacy" else ("server/discover", {})
        self.introduction: Json = self.request(method, params)["result"]
        if era == "legacy":
            self._send({"method": "notifications/initialized"})

    def request(self, method: str, params: Json, **meta: Any) -> Json:
        _, answer = self._begin(method, params, meta)
        return answer.get(timeout=PLENTY)

    def give_up(self, method: str, params: Json, when: Callable[[], bool]) -> None:
        id_, _ = self._begin(method, params, {})
        _wait(when)
        self._send({"method": "notifications/cancelled", "params": {"requestId": id_}})

    def _begin(self, method: str, params: Json, meta: Json) -> tuple[int, "queue.Queue[Json]"]:
        id_ = next(self._ids)
        answer = self._answers[id_] = queue.Queue[Json]()
        with_meta = _with_meta(self._era, params, meta, self._capabilities)
        self._send({"id": id_, "method": method, "params": with_meta})
        return id_, answer

    def _send(self, message: Json) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if "method" not in message:
                self._answers[message["id"]].put(message)
            elif "id" in message:
                self._send({"id": message["id"]} | self._answerer(message))
            else:
                self.notified.append(message)


class RawHttp:
    """Speaks to an endpoint, one POST a message."""

    def __init__(
        self,
        url: str,
        era: Era,
        capabilities: Json,
        answerer: Answerer,
        headers: Mapping[str, str],
    ) -> None:
        self._era: Era = era
        self._capabilities = capabilities
        self._answerer = answerer
        self._ids = itertools.count(1)
        self.notified: list[Json] = []
        accept = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        self._url = url
        self._http = httpx2.Client(headers={**headers, **accept}, timeout=PLENTY)
        if era == "legacy":
            self._http.headers["MCP-Protocol-Version"] = HANDSHAKE
        hello = ("initialize", _hello(capabilities))
        method, params = hello if era == "legacy" else ("server/discover", {})
        self.introduction: Json = self.request(method, params)["result"]
        if era == "legacy":
            self._post({"method": "notifications/initialized"})

    def close(self) -> None:
        self._http.close()

    def request(self, method: str, params: Json, **meta: Any) -> Json:
        with self._begin(method, params, meta) as (_, messages):
            for message in messages:
                if "method" not in message:
                    return message
                if "id" in message:
                    self._post({"id": message["id"]} | self._answerer(message))
                else:
                    self.notified.append(message)
        raise AssertionError("the stream ended without an answer")

    def give_up(self, method: str, params: Json, when: Callable[[], bool]) -> None:
        if self._era == "legacy":
            threading.Thread(target=self.request, args=(method, params), daemon=True).start()
            _wait(when)
            # It is the first request under way, and the last whose id was taken.
            self._post({"method": "notifications/cancelled", "params": {"requestId": self._last}})
            return
        leaving = threading.Thread(target=self._begin_and_leave, args=(method, params, when))
        leaving.start()
        leaving.join(PLENTY)

    def _begin_and_leave(self, method: str, params: Json, when: Callable[[], bool]) -> None:
        # A progress token makes the gateway answer at once with a stream, which can be left.
        with self._begin(method, params, {"progressToken": "t"}):
            _wait(when)

    @contextmanager
    def _begin(self, method: str, params: Json, meta: Json) -> Iterator[tuple[int, Iterator[Json]]]:
        self._last = id_ = next(self._ids)
        body = {
            "jsonrpc": "2.0",
            "id": id_,
            "method": method,
            "params": _with_meta(self._era, params, meta, self._capabilities),
        }
        headers = self._routing(method, params)
        sent = json.dumps(body)
        with self._http.stream("POST", self._url, content=sent, headers=headers) as response:
            if session := response.headers.get("Mcp-Session-Id"):
                self._http.headers["Mcp-Session-Id"] = session
            yield id_, self._messages(response)

    def _routing(self, method: str, params: Json) -> dict[str, str]:
        if self._era == "legacy":
            return {}
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        name = params.get("uri" if method == "resources/read" else "name")
        return (
            headers | {"Mcp-Name": encode_header_value(name)} if isinstance(name, str) else headers
        )

    def _messages(self, response: httpx2.Response) -> Iterator[Json]:
        if response.headers["Content-Type"].startswith("application/json"):
            yield json.loads(response.read())
            return
        rest = b""
        for chunk in response.iter_bytes():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if data := line.removeprefix(b"data:").strip() if line[:5] == b"data:" else b"":
                    yield json.loads(data)

    def _post(self, message: Json) -> None:
        self._http.post(self._url, content=json.dumps({"jsonrpc": "2.0"} | message))


@contextmanager
def raw_stdio(
    command: Sequence[str],
    era: Era,
    *,
    env: Mapping[str, str],
    capabilities: Json | None = None,
    answerer: Answerer = unasked,
) -> Iterator[RawStdio]:
    """Start a process and speak to it."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=dict(env)) as process:
        try:
            yield RawStdio(process, era, capabilities or {}, answerer)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def raw_http(
    url: str,
    era: Era,
    *,
    headers: Mapping[str, str] | None = None,
    capabilities: Json | None = None,
    answerer: Answerer = unasked,
) -> Iterator[RawHttp]:
    """Speak to an endpoint."""
    client = RawHttp(url, era, capabilities or {}, answerer, headers or {})
    try:
        yield client
    finally:
        client.close()


def _wait(when: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(int(PLENTY / 0.01)):
        if when():
            return
        pause.wait(0.01)
    raise AssertionError("it did not come about")
