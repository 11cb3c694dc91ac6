"""What validating does not import: each of these costs more than the validation."""

import subprocess
import sys
from pathlib import Path

HEAVY = ("mcp", "pydantic_ai", "opentelemetry", "httpx", "telemetry", "seriatim.runtime")
SCRIPT = """
import sys
from pathlib import Path
from seriatim.topology import as_text, load
print(as_text(load(Path(sys.argv[1])).problems))
print(*sys.modules, file=sys.stderr)
"""


def test_validating_imports_no_mcp_model_or_telemetry(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text("agents: {root: {id: r, requires: {a: [b]}}}\n")
    command = [sys.executable, "-c", SCRIPT, str(file)]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "agent.requires-unknown-skill" in process.stdout
    imported = set(process.stderr.split())
    assert "seriatim.topology.resolver" in imported
    assert imported.isdisjoint({*HEAVY, "pydantic", "typer", "rich"})
