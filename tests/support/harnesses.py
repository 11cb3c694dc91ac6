"""Harnesses for tests: programs named like the real ones that speak real MCP, without a model."""

import sys
from pathlib import Path

FAKE = Path(__file__).parent / "fake_harness.py"

KINDS = {"claude-code": "claude", "codex": "codex", "gemini": "gemini", "opencode": "opencode"}
"""What `--as` calls a harness -> its program."""


def install(directory: Path) -> Path:
    """Write the programs `claude`, `codex`, `gemini`, `opencode` and `any`, and return where."""
    programs = directory / "programs"
    programs.mkdir()
    for kind in (*KINDS.values(), "any"):
        program = programs / kind
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE}" {kind} "$@"\n')
        program.chmod(0o755)
    return programs
