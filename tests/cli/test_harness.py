"""`seriatim harness`: a command with an agent's tools, the terminal, and the last word."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from seriatim.stores.audit_log import open_audit_log
from tests.support.gateways import BOB, REFUSAL, write_workspace
from tests.support.harnesses import KINDS, install

pytestmark = pytest.mark.timeout(120)


@dataclass
class Place:
    """A workspace, and an environment in which fake harnesses are found."""

    directory: Path
    environment: Mapping[str, str]

    def command(self, *arguments: str) -> list[str]:
        path = str(self.directory / "topology.yaml")
        return [sys.executable, "-m", "seriatim", "harness", path, *arguments]

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            cwd=self.directory,
            env=dict(self.environment),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    @property
    def told(self) -> Any:
        return json.loads((self.directory / "told.json").read_text(encoding="utf-8"))

    def left_behind(self) -> list[str]:
        return [file.name for file in (self.directory / "tmp").iterdir()]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    write_workspace(tmp_path)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "home").mkdir()
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL_", "SERIATIM_", "GEMINI_", "OPENCODE_"))
    }
    path = f"{install(tmp_path)}{os.pathsep}{os.environ['PATH']}"
    home = str(tmp_path / "home")
    return Place(tmp_path, {**kept, "PATH": path, "TMPDIR": str(tmp_path / "tmp"), "HOME": home})


@pytest.mark.parametrize("form", [*KINDS, "any"])
def test_a_harness_is_told_in_its_own_way_is_refused_and_recovers(form: str, place: Place) -> None:
    command = ["--tell", "told.json"] if form in KINDS else ["any", "--tell", "told.json"]
    ended = place.run("--agent", "bob", "--as", form, "--", *command)
    assert ended.returncode == 0, ended.stderr
    refused, listed, card = json.loads(ended.stdout)
    assert (refused, listed) == (REFUSAL, "console, card")
    assert card != REFUSAL
    told = place.told
    assert told["tools"] == BOB
    assert told["arguments"][-2:] == ["--tell", "told.json"]
    assert told["cwd"] == str(place.directory)
    assert f"bob is served to {KINDS.get(form, form)}" in ended.stderr
    with open_audit_log(place.directory / ".seriatim" / "audit.sqlite3") as log:
        rows = log.records({}, until=log.end())
    assert [(row.agent, row.via, row.outcome) for row in rows] == [
        ("bob", "gateway", "refused"),
        ("bob", "gateway", "completed"),
        ("bob", "gateway", "completed"),
    ]
    # The token was on no command line, and is worth nothing any more.
    assert told["token"] not in " ".join(told["arguments"])
    assert told["token"] not in ended.stderr
    assert place.left_behind() == []
    assert not any(Path(file).exists() for file in told["files"])
    with pytest.raises(httpx2.TransportError):
        httpx2.get(told["url"])


def test_any_client_finds_the_places_in_its_command(place: Place) -> None:
    script = 'cp "$1" copied.json; echo "$2"; echo "{}"'
    ended = place.run("--agent", "bob", "--", "sh", "-c", script, "sh", "{mcp_config}", "{url}")
    copied = json.loads((place.directory / "copied.json").read_text(encoding="utf-8"))
    url, braces = ended.stdout.splitlines()
    assert copied["mcpServers"]["seriatim"]["url"] == url
    assert braces == "{}"


def test_stdin_and_stdout_are_the_commands_and_so_is_the_exit_code(place: Place) -> None:
    ended = place.run("--agent", "bob", "--", "sh", "-c", "cat; exit 7", stdin="a\nb\n")
    assert (ended.stdout, ended.returncode) == ("a\nb\n", 7)
    assert "sh has ended with exit code 7" in ended.stderr


def test_a_command_that_a_signal_ended_gives_128_and_its_number(place: Place) -> None:
    ended = place.run("--agent", "bob", "--", "sh", "-c", "kill -KILL $$")
    assert ended.returncode == 128 + signal.SIGKILL
    assert place.left_behind() == []


@contextmanager
def waiting(place: Place) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        place.command("--agent", "bob", "--", "any", "--wait"),
        cwd=place.directory,
        env=dict(place.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        with process:
            assert process.stdout.readline() == "ready\n"
            yield process
    finally:
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_the_command_gets_the_signals_and_says_when_it_is_over(
    number: signal.Signals, place: Place
) -> None:
    with waiting(place) as process:
        assert process.stdout is not None
        process.send_signal(number)
        assert process.stdout.readline() == f"got {number.name}\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "got SIGTERM\n"
        assert process.wait(30) == 42
    assert place.left_behind() == []


def test_what_is_typed_at_the_terminal_reaches_the_command_once(place: Place) -> None:
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(place.directory)
        command = place.command("--agent", "bob", "--", "any", "--wait")
        os.execve(command[0], command, dict(place.environment))
    seen = b""
    try:
        seen = _read_until(terminal, seen, b"ready\r\n")
        os.write(terminal, b"\x03")
        seen = _read_until(terminal, seen, b"got SIGINT\r\n")
        os.kill(pid, signal.SIGTERM)
        seen = _read_until(terminal, seen, b"exit code 42\r\n")
        _, status = os.waitpid(pid, 0)
    finally:
        os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 42
    assert seen.count(b"got SIGINT") == 1
    assert place.left_behind() == []


def _read_until(terminal: int, seen: bytes, wanted: bytes) -> bytes:
    while wanted not in seen:
        seen += os.read(terminal, 4096)
    return seen


def test_a_command_that_is_not_there_is_named_before_anything_starts(place: Place) -> None:
    ended = place.run("--agent", "bob", "--", "no-such-command")
    assert ended.returncode == 127
    assert "error: there is no command `no-such-command`\n\nhint: " in ended.stderr
    assert not (place.directory / "pids").exists()


def test_a_command_that_may_not_be_run_is_told_from_one_that_is_not_there(place: Place) -> None:
    (place.directory / "plain").write_text("#!/bin/sh\n")
    ended = place.run("--agent", "bob", "--", "./plain")
    assert ended.returncode == 126
    assert "hint: make it executable: `chmod +x ./plain`" in ended.stderr


def test_a_command_that_the_system_cannot_run_leaves_nothing_behind(place: Place) -> None:
    program = place.directory / "broken"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)
    ended = place.run("--agent", "bob", "--", "./broken")
    assert ended.returncode == 126
    assert "error: cannot start `./broken`: no such file or directory" in ended.stderr
    assert place.left_behind() == []


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--agent", "bob"], "there is no command to start"),
        (["--agent", "bob", "--", "any", "{token}"], "a token may not stand on a command line"),
        (["--agent", "eve", "--", "any"], "topology `pair` has no agent `eve`"),
        (["--agent", "bob", "--as", "emacs"], "invalid value for `--as`"),
    ],
)
def test_wrong_usage_ends_with_2(arguments: list[str], problem: str, place: Place) -> None:
    ended = place.run(*arguments)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"error: {problem}")
    assert not (place.directory / "pids").exists()


def test_gemini_keeps_its_settings_and_its_login_but_no_other_server(place: Place) -> None:
    own = place.directory / "home" / ".gemini"
    own.mkdir()
    (own / "oauth_creds.json").write_text("{}")
    settings = '// mine\n{"theme": "dark", "mcpServers": {"other": {"command": "x"}},}\n'
    (own / "settings.json").write_text(settings)
    script = 'cat "$GEMINI_CLI_HOME/.gemini/settings.json"; ls "$GEMINI_CLI_HOME/.gemini"'
    program = place.directory / "programs" / "gemini"
    program.write_text(f"#!/bin/sh\n{script}\n")
    ended = place.run("--agent", "bob", "--as", "gemini")
    text, _, names = ended.stdout.rpartition("}\n")
    written = json.loads(text + "}")
    assert (written["theme"], list(written["mcpServers"])) == ("dark", ["seriatim"])
    assert names.split() == ["oauth_creds.json", "settings.json"]
    assert (own / "settings.json").read_text() == settings
    assert (own / "oauth_creds.json").exists()
