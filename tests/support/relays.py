"""The corpus server reached directly and through gateways, in every combination of era and way."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.raw_clients import (
    Answerer,
    Era,
    Json,
    RawClient,
    raw_http,
    raw_stdio,
    unasked,
)
from tests.support.servers.corpus_cases import ODD_NAMES

SERVER = Path(__file__).parent / "servers" / "corpus.py"
ERAS: tuple[Era, ...] = ("legacy", "modern")
WAYS = ("stdio", "http")
FRONTS = [f"{era}-{way}" for era in ERAS for way in WAYS]
BACKS = FRONTS
TOOLS = ("give", "typed", "fixed", "fault", "large", "echo", "steps", "wait", "ask")
ENVIRON = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}


@dataclass(frozen=True)
class Relays:
    """A workspace whose servers are the corpus server in each of its forms, and gateways of it.

    Attributes:
        directory: the workspace's.
        url: where the gateway over HTTP is.
        tokens: agent -> its token there.
        endpoints: era -> where the corpus server is over HTTP.
    """

    directory: Path
    url: str
    tokens: Mapping[str, str]
    endpoints: Mapping[Era, str]

    @property
    def cancelled(self) -> int:
        """The number of calls that the corpus server saw cancelled."""
        notes = self.directory / "notes"
        return len(notes.read_text().splitlines()) if notes.exists() else 0

    def command(self, agent: str) -> list[str]:
        """Return what starts a gateway over stdio."""
        return _gateway(self.directory, "--agent", agent)

    def direct(self, back: str) -> AbstractContextManager[RawClient]:
        """Reach the corpus server itself."""
        era, way = _parts(back)
        if way == "http":
            return raw_http(self.endpoints[era], era)
        return raw_stdio([sys.executable, str(SERVER), era], era, env={})

    def through(
        self,
        front: str,
        agent: str = "ada",
        *,
        capabilities: Json | None = None,
        answerer: Answerer = unasked,
    ) -> AbstractContextManager[RawClient]:
        """Reach it through a gateway; skills are named after the back and the tool."""
        era, way = _parts(front)
        if way == "http":
            return raw_http(
                self.url,
                era,
                headers={"Authorization": f"Bearer {self.tokens[agent]}"},
                capabilities=capabilities,
                answerer=answerer,
            )
        return raw_stdio(
            self.command(agent), era, env=ENVIRON, capabilities=capabilities, answerer=answerer
        )

    def rows(self, skill: str) -> list[dict[str, Any]]:
        """Return the audit rows of a skill, oldest first."""
        log = self.directory / ".seriatim" / "audit.sqlite3"
        with closing(sqlite3.connect(log)) as database:
            database.row_factory = sqlite3.Row
            query = "SELECT * FROM audit WHERE skill = ? ORDER BY event_id"
            return [dict(row) for row in database.execute(query, [skill])]


def skill(back: str, tool: str) -> str:
    """Return the id under which a gateway shows a tool of a form of the corpus server."""
    return f"{back}-{tool}"


@contextmanager
def relays(directory: Path) -> Iterator[Relays]:
    """Start the corpus server's HTTP forms and a gateway over HTTP; stdio is started by need."""
    with ExitStack() as stack:
        endpoints: dict[Era, str] = {}
        notes = {"NOTES": str(directory / "notes")}
        for era in ERAS:
            command = [sys.executable, str(SERVER), era, "--http"]
            endpoints[era] = stack.enter_context(_first_lines(command, 1, notes))[0]
        _write_workspace(directory, endpoints)
        command = _gateway(
            directory, "--agent", "ada", "--agent", "bob", "--agent", "cat", "--http", "127.0.0.1:0"
        )
        served = [json.loads(line) for line in stack.enter_context(_first_lines(command, 3))]
        tokens = {each["agent"]: each["token"] for each in served}
        yield Relays(directory, served[0]["url"], tokens, endpoints)


def _parts(form: str) -> tuple[Era, str]:
    era, _, way = form.partition("-")
    return ("legacy" if era == "legacy" else "modern"), way


def _gateway(directory: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "seriatim", "gateway", str(directory / "t.yaml"), *options]


@contextmanager
def _first_lines(
    command: Sequence[str], lines: int, env: Mapping[str, str] = {}
) -> Iterator[list[str]]:
    """Run a program and give the first lines that it prints."""
    environment = {**ENVIRON, **env}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            yield [process.stdout.readline().strip() for _ in range(lines)]
        finally:
            process.terminate()


def _write_workspace(directory: Path, endpoints: Mapping[Era, str]) -> None:
    notes = {"NOTES": str(directory / "notes")}
    servers: list[dict[str, Any]] = []
    for era in ERAS:
        command = [sys.executable, str(SERVER), era]
        servers.append({"id": f"{era}-stdio", "command": command, "env": notes})
        endpoint = {"transport": "http", "endpoint": endpoints[era]}
        servers.append({"id": f"{era}-http", **endpoint})
    skills = [
        {
            "id": skill(back, id_),
            "server": back,
            "tool": tool,
            "description": "As the skill says.",
        }
        | ({"arguments": {"to": "ops"}} if id_ == "fixed" else {})
        | ({"constraints": {"timeout_seconds": 0.3}} if id_ == "brief" else {})
        for back in BACKS
        for id_, tool in [
            *((tool, tool) for tool in TOOLS),
            ("brief", "wait"),
            *((f"odd{number}", name) for number, name in enumerate(ODD_NAMES)),
        ]
    ]
    ids = [each["id"] for each in skills]
    requires = {skill(back, "typed"): [skill(back, "wait")] for back in BACKS}
    requires |= {skill(back, "fixed"): [skill(back, "ask")] for back in BACKS}
    bob = {"id": "bob", "role": "worker", "skills": ids}
    cat = {"id": "cat", "role": "worker", "skills": ["legacy-stdio-echo", "legacy-stdio-give"]}
    workspace = {
        "metadata": {"name": "corpus"},
        "mcp_servers": servers,
        "skills": skills,
        "seriatim": {
            "expose": {"bob": ["tools", "resources", "prompts"], "cat": ["tools", "resources"]}
        },
        "agents": {
            "root": {
                "id": "ada",
                "role": "root",
                "skills": ids,
                "requires": requires,
                "children": [bob, cat],
            }
        },
    }
    file = directory / "t.yaml"
    file.write_text(yaml.safe_dump(workspace, sort_keys=False), encoding="utf-8")


Checked = Callable[[Json], str]


def canonical(message: Json) -> str:
    """Return an answer as text, without what belongs to one connection: its id, era and server.

    Numbers keep their spelling as far as JSON readers can tell it: `1` is not `1.0`, nor 0 `-0.0`.
    """
    content = {key: value for key, value in message.items() if key not in ("jsonrpc", "id")}
    if isinstance(result := content.get("result"), dict):
        result = {key: value for key, value in result.items() if key != "resultType"}
        meta = dict(result.pop("_meta", None) or {})
        meta.pop("io.modelcontextprotocol/serverInfo", None)
        content["result"] = result | ({"_meta": meta} if meta else {})
    return json.dumps(content, sort_keys=True)
