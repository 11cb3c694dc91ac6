"""What a gateway costs over streamable HTTP: ours, FastMCP's proxy, and none.

    pip install -q -e '.[benchmark]' && python -m benchmarks.gateway

One tool of one server over stdio is called through each front in turn, in both eras of MCP, by
callers that cost next to nothing. The fronts take turns in any order, call by call where calls are
made alone, so that what else the machine does falls on all alike. Ours with and without rules are
two agents of one gateway. `CPU ms` is the processor time of the front's process for one call.
"""

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import anyio
import httpx2
import psutil
import yaml
from anyio.abc import Process
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from benchmarks.callers import VERSIONS, Caller, Era, new_caller
from tests.support.executors import gate_workspace

T = TypeVar("T")

CALLERS = (1, 8, 32, 50)
ANSWER = "Log lines start with a capital."
RULES = {"get": ["list"]}
OURS, RIVAL = "seriatim, no rules", "FastMCP proxy"
RULED = "seriatim, rules"


@dataclass(frozen=True)
class Front:
    """One way to the tool.

    Attributes:
        process: whose memory and processor time is measured.
    """

    url: str
    process: psutil.Process
    tool: str = "get_convention"
    first: str = "list_conventions"
    token: str = ""

    async def caller(self, era: Era, tool: str = "", expected: str = ANSWER) -> Caller:
        return await new_caller(
            self.url, era, tool or self.tool, token=self.token, expected=expected
        )

    def busy_seconds(self) -> float:
        times = self.process.cpu_times()
        return times.user + times.system


@dataclass
class Figures:
    """What was measured of one front in one era.

    Attributes:
        waits: seconds of each call that was made alone.
        rates: number of callers -> calls a second, of each round.
        work: seconds of processor time that the front's process took for `worked` of those calls.
    """

    waits: list[float] = field(default_factory=list)
    work: float = 0
    worked: int = 0
    rates: dict[int, list[float]] = field(default_factory=lambda: {n: [] for n in CALLERS})
    session_bytes: float = 0

    def summary(self) -> dict[str, Any]:
        return {
            "p50_ms": statistics.median(self.waits) * 1e3,
            "p95_ms": statistics.quantiles(self.waits, n=20)[-1] * 1e3,
            "cpu_ms": self.work / self.worked * 1e3,
            "calls_per_second": {n: statistics.median(rates) for n, rates in self.rates.items()},
            "session_kb": self.session_bytes / 1024,
        }


@asynccontextmanager
async def process(*command: str) -> AsyncIterator[tuple[Process, psutil.Process]]:
    async with await anyio.open_process(
        [sys.executable, *command], stdout=PIPE, stderr=None
    ) as running:
        try:
            yield running, psutil.Process(running.pid)
        finally:
            running.terminate()


async def lines(running: Process, count: int) -> list[str]:
    """Return the first lines that a process prints."""
    assert running.stdout
    text = b""
    while text.count(b"\n") < count:
        text += await running.stdout.receive()
    return text.decode().splitlines()


@asynccontextmanager
async def fronts(directory: Path) -> AsyncIterator[Mapping[str, Front]]:
    async with AsyncExitStack() as stack:
        open_ = {}
        rivals = {"direct": "direct", "bare relay": "relay"}
        if find_spec("fastmcp"):
            rivals[RIVAL] = "fastmcp"
        else:
            print("FastMCP is not installed, and left out", file=sys.stderr)
        for label, name in rivals.items():
            running, seen = await stack.enter_async_context(
                process("-m", "benchmarks.fronts", name)
            )
            [url] = await lines(running, 1)
            open_[label] = Front(url, seen)
        running, seen = await stack.enter_async_context(
            process("-m", "seriatim", "gateway", str(workspace(directory)),
                    "--agent", "builder", "--agent", "sibling", "--http", "127.0.0.1:0")
        )  # fmt: skip
        for label, line in zip((OURS, RULED), await lines(running, 2), strict=True):
            told = json.loads(line)
            open_[label] = Front(told["url"], seen, "get", "list", told["token"])
        yield open_


def workspace(directory: Path) -> Path:
    """Write a workspace of two agents that differ in nothing but the rules of the second."""
    file = gate_workspace(directory, {}, of_sibling=RULES)
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    # The other fronts' server keeps no list of its calls, and they know no bound.
    content["mcp_servers"][0]["env"] = {}
    content["seriatim"] = {"limits": {"calls_in_flight": max(CALLERS)}}
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file


def shuffled(fronts: Mapping[str, T]) -> list[tuple[str, T]]:
    """Return the fronts in any order: whoever comes behind itself finds its process warm."""
    return random.sample(list(fronts.items()), len(fronts))


async def alone(callers: Mapping[str, Caller], found: Mapping[str, Figures], rounds: int) -> None:
    """Call through one front after the other, one call at a time."""
    async with AsyncExitStack() as stack:
        for one in callers.values():
            await stack.enter_async_context(one.connected())
        for _ in range(rounds):
            for label, one in shuffled(callers):
                started = time.perf_counter()
                await one.call()
                found[label].waits.append(time.perf_counter() - started)


async def together(callers: Sequence[Caller], figures: Figures, calls: int) -> None:
    async def work(one: Caller) -> None:
        for _ in range(calls // len(callers)):
            await one.call()

    async with AsyncExitStack() as stack:
        for one in callers:
            await stack.enter_async_context(one.connected())
        started = time.perf_counter()
        async with anyio.create_task_group() as tasks:
            for one in callers:
                tasks.start_soon(work, one)
        seconds = time.perf_counter() - started
    figures.rates[len(callers)].append(calls // len(callers) * len(callers) / seconds)


async def session_bytes(front: Front, era: Era, sessions: int) -> float:
    """Return what a session of the SDK's client takes in the front's process, idle after a call."""
    mode = "legacy" if era == "handshake" else VERSIONS[era]
    headers = {"Authorization": f"Bearer {front.token}"} if front.token else {}
    async with AsyncExitStack() as stack:
        before = front.process.memory_full_info().uss
        for _ in range(sessions):
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers))
            transport = streamable_http_client(front.url, http_client=http)
            client = await stack.enter_async_context(Client(transport, mode=mode))
            await client.call_tool(front.tool, {})
        after = front.process.memory_full_info().uss
    return (after - before) / sessions


async def measure(
    open_fronts: Mapping[str, Front], era: Era, rounds: int, calls: int, sessions: int
) -> dict[str, Figures]:
    found = {label: Figures() for label in open_fronts}
    callers: dict[str, list[Caller]] = {}
    for label, front in open_fronts.items():
        # What the rules of one front ask for, and what happens at a first call only.
        await together([await front.caller(era, front.first, "console")], Figures(), 1)
        callers[label] = [await front.caller(era) for _ in range(max(CALLERS))]
        await together(callers[label], Figures(), max(CALLERS))
    for number in range(rounds):
        print(f"\r{era}: round {number + 1} of {rounds}", end="", file=sys.stderr)
        await alone({label: callers[label][0] for label in open_fronts}, found, calls)
        for count in CALLERS:
            for label, front in shuffled(open_fronts):
                before = front.busy_seconds()
                await together(callers[label][:count], found[label], calls)
                found[label].work += front.busy_seconds() - before
                found[label].worked += calls // count * count
    for label in open_fronts.keys() - {RULED}:  # in one process with the other of ours
        found[label].session_bytes = await session_bytes(open_fronts[label], era, sessions)
    found[RULED].session_bytes = found[OURS].session_bytes
    print("\r" + " " * 40, end="\r", file=sys.stderr)
    return found


def goals(summaries: Mapping[str, dict[str, Any]]) -> dict[str, float]:
    """Return ratios: goals are 0.7 for latency, 1.5 for throughput, and 1.02 for the rules."""
    ours, ruled = summaries[OURS], summaries[RULED]
    ratios = {"rules on / rules off, p50": ruled["p50_ms"] / ours["p50_ms"]}
    if rival := summaries.get(RIVAL):
        rates, theirs = ruled["calls_per_second"], rival["calls_per_second"]
        ratios |= {
            "latency p50 / FastMCP": ruled["p50_ms"] / rival["p50_ms"],
            "latency p95 / FastMCP": ruled["p95_ms"] / rival["p95_ms"],
            "processor time / FastMCP": ruled["cpu_ms"] / rival["cpu_ms"],
            **{f"throughput at {n} / FastMCP": rates[n] / theirs[n] for n in CALLERS},
        }
    return ratios


def report(era: Era, summaries: Mapping[str, dict[str, Any]]) -> None:
    print(f"{VERSIONS[era]} ({era})\n")
    heads = "".join(f"{f'at {n}':>8}" for n in CALLERS)
    print(f"{'':<20}{'p50 ms':>8}{'p95 ms':>8}{'CPU ms':>8}{heads}{'KB/session':>12}")
    for label, summary in summaries.items():
        rates = "".join(f"{rate:>8.0f}" for rate in summary["calls_per_second"].values())
        print(
            f"{label:<20}{summary['p50_ms']:>8.2f}{summary['p95_ms']:>8.2f}"
            f"{summary['cpu_ms']:>8.2f}{rates}{summary['session_kb']:>12.0f}"
        )
    print()
    for name, ratio in goals(summaries).items():
        print(f"{name:<32}{ratio:>6.3f}")
    print()


async def main(rounds: int, calls: int, sessions: int, form: str) -> None:
    with TemporaryDirectory() as name:
        async with fronts(Path(name)) as open_fronts:
            found: dict[Era, dict[str, Any]] = {}
            for era in VERSIONS:
                figures = await measure(open_fronts, era, rounds, calls, sessions)
                found[era] = {label: figure.summary() for label, figure in figures.items()}
    if form == "json":
        print(json.dumps({era: {"fronts": s, "goals": goals(s)} for era, s in found.items()}))
        return
    print(f"{rounds} rounds of {calls} calls alone, and of {calls} at each number of callers\n")
    for era, summaries in found.items():
        report(era, summaries)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=100, help="calls of a round; 50 at least")
    parser.add_argument("--sessions", type=int, default=100, help="sessions whose memory is taken")
    parser.add_argument("--format", choices=["text", "json"], default="text")
    options = parser.parse_args()
    anyio.run(main, options.rounds, options.calls, options.sessions, options.format)
