"""`seriatim gateway` when it does not start: what is said, and the exit code."""

import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seriatim.cli.main import main
from tests.support.gateways import write_workspace


@pytest.fixture
def run_command(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Run the command in this process; return exit code and stderr, of one that does not start."""

    def run(*arguments: str | Path) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["seriatim", "gateway", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        said = capfd.readouterr()
        assert said.out == ""
        assert isinstance(left.value.code, int)
        return left.value.code, said.err

    return run


def test_several_agents_need_http(tmp_path: Path, run_command: Callable[..., Any]) -> None:
    path = write_workspace(tmp_path)
    assert run_command(path, "--agent", "ada", "--agent", "bob") == (
        2,
        "error: over stdio a gateway serves one agent\n\n"
        "hint: give `--agent` once, or serve over HTTP with `--http 127.0.0.1:0`\n",
    )


def test_an_unknown_agent_is_answered_with_the_nearest_and_all(
    tmp_path: Path, run_command: Callable[..., Any]
) -> None:
    path = write_workspace(tmp_path)
    assert run_command(path, "--agent", "adda") == (
        2,
        "error: topology `pair` has no agent `adda`\n\n"
        "hint: did you mean `ada`? its agents are `ada`, `bob`\n",
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "error: no agent is named\n\nhint: name the one to serve with `--agent`\n"),
        (
            ("--http", "127.0.0.1:0"),
            "error: no agent is named\n\n"
            "hint: name one with `--agent`; or give an admin token, or an `auth` section in the "
            "settings, to register agents later\n",
        ),
        (
            ("--agent", "ada", "--agent", "ada", "--http", "127.0.0.1:0"),
            "error: `--agent ada` is given more than once\n\n"
            "hint: give it once: an agent has one registration in a run\n",
        ),
        (
            ("--agent", "ada", "--http", "127.0.0.1:0", "--ttl", "8 hours"),
            "error: `--ttl 8 hours` is no length of time\n\n"
            "hint: write it like `90s`, `15m`, `8h`, `7d` or `1h30m`\n",
        ),
        (
            ("--agent", "ada", "--ttl", "8h"),
            "error: `--ttl` is for HTTP\n\n"
            "hint: serve over HTTP with `--http 127.0.0.1:0`, or leave it out\n",
        ),
        (
            ("--agent", "ada", "--http", "127.0.0.1:0", "--tls-cert", "cert.pem"),
            "error: `--tls-cert` and `--tls-key` belong together\n\nhint: give both, or neither\n",
        ),
    ],
)
def test_options_that_do_not_go_together_are_said(
    tmp_path: Path, run_command: Callable[..., Any], arguments: tuple[str, ...], problem: str
) -> None:
    assert run_command(write_workspace(tmp_path), *arguments) == (2, problem)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"short", "`token` holds no admin token of at least 16 characters"),
        (b"\xff" * 20, "cannot read the admin token in `token`: it is no text"),
        (b"", "`token` holds no admin token of at least 16 characters"),
    ],
)
def test_an_admin_token_that_is_none_is_said(
    tmp_path: Path,
    run_command: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    content: bytes,
    problem: str,
) -> None:
    path = write_workspace(tmp_path)
    monkeypatch.chdir(tmp_path)
    Path("token").write_bytes(content)
    code, said = run_command(path, "--http", "127.0.0.1:0", "--admin-token-file", "token")
    assert code == 1
    assert said.startswith(f"error: {problem}\n\nhint: ")


def test_a_missing_certificate_is_said(tmp_path: Path, run_command: Callable[..., Any]) -> None:
    path, nowhere = write_workspace(tmp_path), tmp_path / "nowhere.pem"
    options = ("--tls-cert", nowhere, "--tls-key", nowhere)
    assert run_command(path, "--agent", "ada", "--http", "127.0.0.1:0", *options) == (
        1,
        f"error: cannot read `{nowhere}`: no such file or directory\n\nhint: give another file\n",
    )


def test_one_of_several_topologies_must_be_named(run_command: Callable[..., Any]) -> None:
    code, said = run_command("examples/conventions", "--agent", "builder")
    assert code == 2
    assert "error: the workspace has several topologies" in said
    assert "`--topology`" in said


@pytest.mark.parametrize("address", ["8000", ":8000", "host:", "host:http", "host:65536", "h:-1"])
def test_what_is_no_host_and_port_is_said(
    tmp_path: Path, run_command: Callable[..., Any], address: str
) -> None:
    code, said = run_command(write_workspace(tmp_path), "--agent", "ada", "--http", address)
    assert code == 2
    assert said.startswith(f"error: `{address}` is no HOST:PORT\n\nhint: ")


def test_a_port_that_is_taken_is_said(tmp_path: Path, run_command: Callable[..., Any]) -> None:
    path = write_workspace(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert run_command(path, "--agent", "ada", "--http", address) == (
            1,
            f"error: cannot listen on `{address}`: address already in use\n\n"
            "hint: choose another address, or port 0 for any free one\n",
        )


def test_a_run_id_of_the_wrong_shape_is_said(
    tmp_path: Path, run_command: Callable[..., Any]
) -> None:
    code, said = run_command(write_workspace(tmp_path), "--agent", "ada", "--run", "a b")
    assert code == 2
    assert said.startswith("error: `a b` cannot be the id of a run")


def test_a_broken_topology_is_not_served(tmp_path: Path, run_command: Callable[..., Any]) -> None:
    path = write_workspace(tmp_path)
    text_of_rule = "      get-convention:\n      - list-conventions\n"
    assert text_of_rule in path.read_text()
    broken = path.read_text().replace(text_of_rule, "      get-convention:\n      - nope\n")
    path.write_text(broken)
    code, said = run_command(path, "--agent", "ada")
    assert code == 1
    assert "agent.requires-unknown-skill" in said
    assert not (tmp_path / ".seriatim").exists()


def test_a_path_without_a_workspace_is_wrong_usage(
    tmp_path: Path, run_command: Callable[..., Any]
) -> None:
    code, _ = run_command(tmp_path / "nowhere", "--agent", "ada")
    assert code == 2


def test_a_missing_variable_is_named(tmp_path: Path, run_command: Callable[..., Any]) -> None:
    path = write_workspace(tmp_path, env={"KEY": "${NO_SUCH_VARIABLE}"})
    code, said = run_command(path, "--agent", "ada", "--http", "127.0.0.1:0")
    assert code == 1
    assert said == (
        "error: server `counting`: `env.KEY` needs the environment variable `NO_SUCH_VARIABLE`, "
        "which is not set\n\nhint: set `NO_SUCH_VARIABLE`\n"
    )


@pytest.mark.parametrize("front", [(), ("--http", "127.0.0.1:0")], ids=["stdio", "http"])
def test_an_interceptor_that_cannot_be_had_is_said_before_anything_is_served(
    tmp_path: Path, run_command: Callable[..., Any], front: tuple[str, ...]
) -> None:
    path = write_workspace(tmp_path, settings={"interceptors": [{"use": "nowhere:make"}]})
    code, said = run_command(path, "--agent", "ada", *front)
    assert code == 1
    assert "error: interceptor `nowhere:make` cannot be imported" in said
    assert "served" not in said


def test_more_agents_than_may_be_registered_are_said(
    tmp_path: Path, run_command: Callable[..., Any]
) -> None:
    path = write_workspace(tmp_path, settings={"limits": {"registrations": 1}})
    code, said = run_command(path, "--agent", "ada", "--agent", "bob", "--http", "127.0.0.1:0")
    assert code == 1
    assert said.endswith(
        "error: `bob` cannot be registered: there are as many registrations as there may be; "
        "end some of them first\n\nhint: raise `registrations` under `limits` in the settings\n"
    )
    assert "served" not in said
