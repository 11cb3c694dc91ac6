"""Services that some tests need: without one a test is skipped, or fails where all are required."""

import os
import subprocess
from pathlib import Path
from typing import Final, NoReturn

import pytest

ROOT: Final = Path(__file__).parents[2]

REQUIRED: Final = "SERIATIM_REQUIRE_SERVICES"
"""Set to `1` where a missing service is a failure, and not a reason to skip."""


def all_required() -> bool:
    """Whether no test may be skipped for want of a service."""
    return os.environ.get(REQUIRED) == "1"


def require(reason: str) -> NoReturn:
    """Skip the test that lacks a service, or fail it where every service is required.

    Args:
        reason: what is missing, and how to get it.

    """
    if all_required():
        pytest.fail(f"{reason} ({REQUIRED}=1)", pytrace=False)
    pytest.skip(reason)


def tools_directory() -> Path:
    """Return where tools that tests build or install are kept: outside the checkout."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "seriatim-tools"


def made_by(script: str, *arguments: str) -> str:
    """Return what a script in `.ci` prints; it prints the path of the tool that it provides.

    Fails, or skips, when the script does.
    """
    done = subprocess.run(
        [ROOT / ".ci" / script, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        require(f"`.ci/{script}`: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
    return done.stdout.strip()
