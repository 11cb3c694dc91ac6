"""Time `seriatim validate` on a generated workspace, beside a plain load of the same files.

Run: python benchmarks/validate.py [--skills 150] [--rounds 7]
"""

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from seriatim.topology import Sound, load

SKILL = """\
apiVersion: swarmkit/v1
kind: Skill
metadata:
  id: skill-{n}
  name: Skill {n}
  description: >
    Reads card {n} of the warehouse, and returns it in full: its place, what it holds,
    and what was done to it last.
category: capability
implementation: {{type: mcp_tool, server: server-{server}, tool: tool_{n}}}
iam: {{required_scopes: [cards:read]}}
provenance: {{authored_by: human, version: 1.0.0}}
"""


def generate(directory: Path, skills: int) -> None:
    """Write a workspace: ten skills a server, thirty an agent, each after the one before."""
    servers = "".join(
        f"  - {{id: server-{n}, transport: stdio, command: [python, server.py]}}\n"
        for n in range(skills // 10 + 1)
    )
    write(directory / "workspace.yaml", f"kind: Workspace\nmcp_servers:\n{servers}")
    for n in range(skills):
        write(directory / f"skills/skill-{n}.yaml", SKILL.format(n=n, server=n // 10))
    lines = ["kind: Topology", "metadata: {name: warehouse, version: 1.0.0}", "agents:", "  root:"]
    lines += ["    id: root", "    role: root", "    children:"]
    for first in range(0, skills, 30):
        held = [f"skill-{n}" for n in range(first, min(first + 30, skills))]
        lines += [f"      - id: agent-{first}", "        role: worker"]
        lines += ["        iam: {base_scope: [cards:read]}", f"        skills: [{', '.join(held)}]"]
        rules = [f"          {b}: [{a}]" for a, b in pairwise(held)]
        lines += ["        requires:", *rules] if rules else []
    write(directory / "topologies/warehouse.yaml", "\n".join(lines) + "\n")


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def seconds(rounds: int, work: Callable[[], object]) -> float:
    """Return the least processor time that the work took."""
    times = []
    for _ in range(rounds):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


def process_seconds(rounds: int, command: list[str]) -> float:
    """Return the least processor time that a process took, start-up included."""
    times = []
    for _ in range(rounds):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--skills", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        directory = Path(name)
        generate(directory, options.skills)
        files = sorted(directory.rglob("*.yaml"))

        def plain_load() -> None:
            for file in files:
                yaml.load(file.read_bytes(), yaml.CSafeLoader)

        def validate() -> None:
            assert isinstance(load(directory), Sound)

        cli = "from seriatim.cli.main import main; main()"
        command = [sys.executable, "-c", cli, "validate", name]
        cold = [sys.executable, "-B", "-X", f"pycache_prefix={name}/none", *command[1:]]
        figures = {
            "plain load of the files, C loader": seconds(options.rounds, plain_load),
            "load and check": seconds(options.rounds, validate),
            "python -c pass": process_seconds(options.rounds, [sys.executable, "-c", "pass"]),
            "the command": process_seconds(options.rounds, command),
            "the command, nothing compiled": process_seconds(2, cold),
        }
    print(f"{options.skills} skills in {len(files)} files; least of {options.rounds}, CPU")
    for label, figure in figures.items():
        print(f"{label:<36}{figure * 1000:8.1f} ms")


if __name__ == "__main__":
    main()
