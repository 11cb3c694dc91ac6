"""`docs/gateway.md` shows what runs."""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from seriatim.runtime.gateway.half_open import HEAD_SECONDS, IDLE_SECONDS, MOST_CONNECTIONS
from seriatim.runtime.gateway.keys import LIFE, PAUSE
from seriatim.runtime.servers.process import INHERITED
from seriatim.topology import load_workspace
from seriatim.topology.auth import DEFAULT_ALGORITHMS
from seriatim.topology.models import GatewayLimits
from tests.support.documents import blocks, expect_shown, run_shell, shell_environment
from tests.support.services import require

# Each test starts several processes.
pytestmark = pytest.mark.timeout(240)

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "gateway.md").read_text(encoding="utf-8")
TEXT = re.sub(r"\s+", " ", DOCUMENT)
STARTS, ADMITS = blocks(DOCUMENT, "sh")
(ASKS,) = blocks(DOCUMENT, "console")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    shutil.copytree(
        ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns(".seriatim")
    )
    return tmp_path


@contextmanager
def started(command: str, here: Path) -> Iterator[dict[str, str]]:
    """Start a gateway as the document does, on a free port, and give the first line it prints."""
    with subprocess.Popen(
        shlex.split(command.replace(":8080", ":0")),
        cwd=here,
        env=shell_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as gateway:
        assert gateway.stdout is not None
        yield json.loads(gateway.stdout.readline())
        gateway.terminate()


@pytest.fixture
def admin_url(here: Path) -> Iterator[str]:
    """Run the block that starts a gateway with an admin token, on a free port."""
    if not (shutil.which("curl") and shutil.which("openssl")):
        require("`curl` or `openssl` is not installed; Debian has packages of these names")
    token, start = ADMITS.splitlines()
    run_shell(token, here, shell_environment())
    with started(start, here) as line:
        assert sorted(line) == ["admin", "run", "url"]
        yield line["admin"]


def test_the_gateway_prints_the_line_that_is_shown(here: Path) -> None:
    (shown,) = blocks(DOCUMENT, "json")
    with started(STARTS, here) as line:
        assert list(line) == list(json.loads(shown))
        assert len(line["token"]) == len(json.loads(shown)["token"])
        assert line["url"].endswith("/mcp")


def test_agents_are_registered_as_shown(here: Path, admin_url: str) -> None:
    block = ASKS.replace("http://127.0.0.1:8080/registrations", admin_url)
    block = block.replace("http://127.0.0.1:8080", admin_url.removesuffix("/registrations"))
    expect_shown(block, here, shell_environment())


def test_the_settings_are_settings(here: Path) -> None:
    (block,) = blocks(DOCUMENT, "yaml")
    workspace = here / "examples" / "conventions"
    (workspace / "seriatim.yaml").write_text(block, encoding="utf-8")
    settings = load_workspace(workspace).settings
    assert settings.gateway == GatewayLimits(200, 16, 64, 600, 8 * 1024 * 1024)
    [auth] = settings.auth
    assert (auth.agent_claim, auth.run_claim, auth.agents) == (
        "azp",
        "job",
        {"client-7": "builder"},
    )


def test_the_defaults_and_bounds_are_those_of_the_code() -> None:
    limits = GatewayLimits()
    for shown in (
        f"`calls_in_flight` ({limits.calls_in_flight} by default)",
        f"`sessions` ({limits.sessions} by default)",
        f"`request_size` ({limits.request_size // 1024**2} MiB by default)",
        f"`session_idle` ({limits.session_idle / 60:g} minutes by default)",
        f"{MOST_CONNECTIONS} connections may be open",
        f"within {HEAD_SECONDS:g} seconds is closed, and one at rest after {IDLE_SECONDS}",
        f"again after {LIFE / 60:g} minutes",
        f"once in {PAUSE:g} seconds",
        ", ".join(f"`{name}`" for name in INHERITED),
        "`{}`, `{}` and `{}` by default".format(*DEFAULT_ALGORITHMS),
    ):
        assert shown in TEXT


def test_every_option_that_the_document_names_is_one(here: Path) -> None:
    names = set(re.findall(r"(?<=[`\s])--[a-z][a-z-]+", DOCUMENT))
    printed = run_shell("seriatim gateway --help", here, shell_environment())
    assert {name for name in names if name not in printed} == set()


def test_every_file_that_the_document_names_is_there() -> None:
    names = re.findall(r"\]\((?!https?:)([^)#]+)\)", DOCUMENT)
    assert [name for name in names if not (ROOT / "docs" / name).exists()] == []
