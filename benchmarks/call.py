"""What the gate adds to a real call: `python -m benchmarks.call`.

One server over stdio, called in turn bare (an MCP client of the SDK), governed (the whole chain,
with the audit row committed to SQLite before the outcome is returned), and refused. Rounds
interleave the three, so that what else the machine does falls on all of them alike.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters

from interceptors import CallId, RunId, Via
from seriatim.runtime.assembly import assemble
from seriatim.runtime.dispatch import NO_LIMIT, Request, governed_mcp_call
from seriatim.runtime.run import Observers, open_run
from seriatim.stores.places import audit_place, open_audit
from seriatim.topology import load_workspace
from tests.support.executors import gate_workspace
from tests.support.mcp_servers import SERVERS

ROUNDS = 60
CALLS = 20
RULES = {"get": ["list"], "search": ["fail"]}

Call = Callable[[], Awaitable[object]]


async def timed(call: Call) -> list[float]:
    spent = []
    for _ in range(CALLS):
        started = time.perf_counter()
        await call()
        spent.append(time.perf_counter() - started)
    return spent


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        workspace = load_workspace(gate_workspace(directory, RULES))
        [topology] = workspace.topologies.values()
        bare = StdioServerParameters(command=sys.executable, args=[str(SERVERS / "counting.py")])
        async with (
            Client(bare, mode="auto") as client,
            open_audit(audit_place("", directory)) as audit,
            open_run(
                RunId("bench"),
                workspace,
                topology,
                [topology.root.id],
                audit=audit,
                max_calls=NO_LIMIT,
                environ={"PATH": str(Path(sys.executable).parent)},
                observers=Observers(),
            ) as run,
        ):
            agent = assemble(run, topology.root, Via.MODEL)

            def governed(skill: str) -> Call:
                return lambda: governed_mcp_call(agent, [Request(CallId("1"), skill, {})])

            await governed("list")()
            await client.call_tool("get_convention", {})
            cases: dict[str, Call] = {
                "bare": lambda: client.call_tool("get_convention", {}),
                "governed, prerequisite met": governed("get"),
                "governed, refused": governed("search"),
            }
            spent: dict[str, list[float]] = {case: [] for case in cases}
            for _ in range(ROUNDS):
                for case, call in cases.items():
                    spent[case] += await timed(call)
    report(spent)


def report(spent: dict[str, list[float]]) -> None:
    print(f"{ROUNDS} rounds of {CALLS} calls each; microseconds\n")
    print(f"{'case':<30}{'p50':>8}{'p95':>8}{'p50 / bare':>12}")
    bare = statistics.median(spent["bare"])
    for case, times in spent.items():
        p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
        print(f"{case:<30}{p50 * 1e6:>8.0f}{p95 * 1e6:>8.0f}{p50 / bare:>12.2f}")


if __name__ == "__main__":
    anyio.run(main)
