"""The demo's four parts. What it claims is read from the audit log, and checked."""

from pathlib import Path
from typing import Final

from seriatim.demo.commands import Command, DemoError, python, run, seriatim
from seriatim.demo.comparison import arguments_named, code_lines, rule_in_place, rule_lines
from seriatim.demo.page import Page
from seriatim.demo.seen import Row, Visit, rows_of, visit_of

GUARDED: Final = "get-build-convention"
FIRST: Final = "list-build-conventions"
QUESTION: Final = "How do console screens confirm?"
RECOVERY: Final = [(GUARDED, "refused"), (FIRST, "completed"), (GUARDED, "completed")]


class Story:
    """Tells the demo in a workspace that has been unpacked for it."""

    def __init__(self, page: Page, place: Path) -> None:
        self._page: Final = page
        self._place: Final = place
        self._asked: Final = place / "topologies" / "asked.yaml"
        self._ordered: Final = place / "topologies" / "ordered.yaml"

    async def tell(self) -> None:
        """Tell all of it.

        Raises:
            DemoError: when a command fails, or something claimed is not so.

        """
        self._page.prose(
            f"The workspace of this demo is {self._place}; it stays there. Its MCP server is real "
            "and runs on stdio. A script plays the model, so that no key is needed."
        )
        await self._the_failure()
        reason = await self._the_fix()
        visit = await self._the_gateway(reason)
        await self._the_old_way(visit)
        self._what_next()

    async def _the_failure(self) -> None:
        self._page.heading("1. The failure: the prompt asks for an order, and nothing holds it")
        self._page.prose(
            f"The prompt says: IMPORTANT: call {FIRST} before anything else. The agent goes "
            "straight for what it wants."
        )
        await self._show(self._play("asked", "--run", "asked"))
        rows = await self._rows(self._place, "asked")
        calls = {skill: sum(row.skill == skill for row in rows) for skill in (FIRST, GUARDED)}
        _check(calls[FIRST] == 0 < calls[GUARDED], "the agent skips what the prompt asks for")
        self._page.found(
            f"{FIRST} was called {calls[FIRST]} times; {GUARDED} was called and answered all "
            "the same."
        )

    async def _the_fix(self) -> str:
        """Tell the second part, and return the text of the refusal in it."""
        self._page.heading("2. The fix: four lines of topology")
        self._page.file(rule_in_place(self._asked, self._ordered))
        self._page.prose("The same agent, under the same prompt:")
        await self._show(self._play("ordered", "--run", "ordered"))
        self._page.prose("The audit log of that run:")
        await self._show(seriatim("logs", str(self._place), "--run", "ordered"))
        rows = await self._rows(self._place, "ordered")
        _check(
            [(row.skill, row.outcome) for row in rows] == RECOVERY,
            "the agent is refused, does what it is told, and succeeds",
        )
        reason = rows[0].reason or ""
        self._page.prose("What the agent was told:")
        self._page.refusal(reason)
        self._page.found("The agent was refused, did what it was told, and succeeded.")
        return reason

    async def _the_gateway(self, reason: str) -> Visit:
        """Tell the third part, and return what the harness saw.

        Args:
            reason: how the same call was refused on the model's path.

        """
        self._page.heading("3. The same through the gateway, for any harness that speaks MCP")
        self._page.prose(
            "harness.py is a plain MCP client, in the place of Claude Code or Codex. It starts the "
            "gateway as its server."
        )
        visit = await self._visit(self._place, "ordered", "gateway")
        rows = await self._rows(self._place, "gateway")
        _check(
            [(row.skill, row.outcome) for row in rows] == RECOVERY,
            "the harness is refused, does what it is told, and succeeds",
        )
        told = {visit.calls[0].text, rows[0].reason, reason}
        _check(len(told) == 1, "harness, log and model read the same refusal")
        self._page.found("The harness was refused in the same words, and recovered.")
        return visit

    async def _the_old_way(self, visit: Visit) -> None:
        """Tell the fourth part.

        Args:
            visit: what a harness sees where the topology holds the order.

        """
        self._page.heading("4. The old way: a server that holds the order by hand")
        self._page.prose(
            "by-hand/server.py is the same server before: every tool takes a signed "
            "acknowledgement and gives the next one, and the agent carries it from call to call."
        )
        by_hand = self._place / "by-hand"
        old = await self._visit(by_hand / "topology.yaml", "by-hand", "by-hand")
        stopped = [[call.is_error for call in each.calls] for each in (old, visit)]
        _check(stopped == [[True, False, False]] * 2, "the order holds, by hand and by topology")
        old_rows = await self._rows(by_hand / "topology.yaml", "by-hand")
        rows = await self._rows(self._place, "gateway")
        lines = code_lines(by_hand / "server.py"), code_lines(self._place / "server.py")
        rules = len(rule_lines(self._asked, self._ordered))
        acks = arguments_named(old.schemas, "ack"), arguments_named(visit.schemas, "ack")
        self._page.table(
            ("", "by hand", "by topology"),
            [
                ("lines of server", *lines),
                ("lines of topology that hold the order", 0, rules),
                ("`ack` arguments in the tools' schemas", *acks),
                ("calls out of order that were stopped", *map(sum, stopped)),
                ("of these, on record as refused", _refused(old_rows), _refused(rows)),
            ],
        )
        _check(lines[0] > lines[1] and acks[0] > acks[1] == 0, "the topology takes less")
        self._page.found(
            f"{lines[0] - lines[1]} lines of server and {acks[0]} arguments disappeared, "
            f"{rules} lines of topology came, and the order holds."
        )

    def _what_next(self) -> None:
        place = str(self._place)
        again = self._play("ordered").shown
        logs = seriatim("logs", place, "--run", "ordered").shown
        validate = seriatim("validate", place).shown
        self._page.heading("What next")
        self._page.prose(f"The audit log is {self._place / '.seriatim' / 'audit.sqlite3'}.")
        for text, command in (
            ("Read it:", logs),
            ("See the trace of a run:", f"OTEL_TRACES_EXPORTER=console {again}"),
            (
                "Send the trace to a backend that takes OTLP, such as Jaeger:",
                f"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 {again}",
            ),
            (f"Misspell a skill in {self._ordered}, and be told where:", validate),
        ):
            self._page.suggestion(text, command)

    def _play(self, topology: str, *options: str) -> Command:
        script = self._place / f"{topology}.agent.yaml"
        place = str(self._place)
        return seriatim(
            *("run", place, "--topology", topology, "--script", str(script)),
            *("--input", QUESTION, *options),
        )

    async def _visit(self, workspace: Path, topology: str, run_id: str) -> Visit:
        """Let the harness visit a gateway, and return what it saw."""
        options = ("--topology", topology, "--agent", "builder", "--run", run_id)
        gateway = seriatim("gateway", str(workspace), *options)
        return visit_of(await self._show(python(self._place / "harness.py", gateway)))

    async def _show(self, command: Command) -> str:
        """Run a command in front of the reader, and return what it printed on stdout."""
        self._page.command(command.shown)
        printed = await run(command)
        self._page.output(printed.stderr + printed.stdout)
        return printed.stdout

    async def _rows(self, workspace: Path, run_id: str) -> list[Row]:
        logs = seriatim("logs", str(workspace), "--run", run_id, "--format", "json")
        return rows_of((await run(logs)).stdout)


def _refused(rows: list[Row]) -> int:
    return sum(row.policy_decision == "deny" for row in rows)


def _check(holds: bool, claim: str) -> None:
    if not holds:
        raise DemoError(f"this was to be seen, and was not: {claim}")
