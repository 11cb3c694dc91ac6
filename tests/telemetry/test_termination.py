"""SIGTERM ends both commands, and loses no span."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from tests.support.gateways import write_workspace
from tests.support.model_runs import workspace_file

pytestmark = pytest.mark.timeout(120)

BOUND = 20
"""Seconds for what takes one or two on a machine that is not busy."""
AGENTS = """
agents:
  root: {id: ann, role: root, skills: [list, slow]}
"""
SCRIPT = "ann: [{calls: [{skill: list}]}, {calls: [{skill: slow}]}, {say: done}]"


@contextmanager
def started(*words: object) -> Iterator[subprocess.Popen[str]]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL_", "SERIATIM_"))
    }
    with subprocess.Popen(
        [sys.executable, "-m", "seriatim", *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=kept,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def statuses(receiver: Any) -> dict[str, tuple[int, str]]:
    """Return the status of each span under its name; those that are looked at have their own."""
    return {span.name: (span.status.code, span.status.message) for span in receiver.spans()}


def test_a_run_that_is_terminated_delivers_its_spans(tmp_path: Path, receiver: Any) -> None:
    workspace = workspace_file(tmp_path, AGENTS)
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT, encoding="utf-8")
    arguments = ("--script", script, "--input", "go", "--otlp", receiver.endpoint)
    with started("run", workspace, *arguments) as process:
        assert process.stderr is not None
        said = ""
        for line in process.stderr:
            said += line
            if "calls      slow" in line:
                process.send_signal(signal.SIGTERM)
        assert process.wait(BOUND) == 128 + signal.SIGTERM, said
    assert "telemetry:" not in said
    assert "detach" not in said
    found = statuses(receiver)
    assert found["execute_tool list"] == (Status.STATUS_CODE_UNSET, "")
    code, message = found["execute_tool slow"]
    assert code == Status.STATUS_CODE_ERROR
    assert "cancelled" in message
    assert found["invoke_agent ann"] == (Status.STATUS_CODE_ERROR, "cancelled")


def test_a_gateway_that_is_terminated_delivers_its_spans(tmp_path: Path, receiver: Any) -> None:
    workspace = write_workspace(tmp_path)
    arguments = ("--agent", "ada", "--otlp", receiver.endpoint)
    with started("gateway", workspace, *arguments) as process:
        client = {"name": "by hand", "version": "0"}
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        send(process, id=0, method="initialize", params=hello)
        hear(process)
        send(process, method="notifications/initialized")
        send(process, id=1, method="tools/call", params={"name": "get-convention"})
        assert hear(process)["result"]["isError"]
        send(process, id=2, method="tools/call", params={"name": "slow"})
        send(process, id=3, method="tools/call", params={"name": "echo"})
        # Behind the other on the same connection: the slow one has been sent before it.
        assert hear(process)["id"] == 3
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=BOUND)
    assert process.returncode == 0, said
    assert "telemetry:" not in said
    assert "detach" not in said
    found = statuses(receiver)
    assert found["execute_tool get-convention"] == (Status.STATUS_CODE_UNSET, "")
    assert found["execute_tool echo"] == (Status.STATUS_CODE_UNSET, "")
    code, message = found["execute_tool slow"]
    assert code == Status.STATUS_CODE_ERROR
    assert "cancelled" in message
    assert "seriatim.registration" in found


def send(process: subprocess.Popen[str], **message: Any) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())
