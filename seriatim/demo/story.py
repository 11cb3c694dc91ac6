"""The demo's four parts. What it claims is read from the audit log, and checked."""

from pathlib import Path
from typing import Final

from interceptors import AuditRecord
from seriatim.demo.commands import Command, DemoError, Printed, perform, python, seriatim
from seriatim.demo.comparison import arguments_named, code_lines, rule_in_place, rule_lines
from seriatim.demo.page import Page
from seriatim.demo.seen import Visit, recorded, visit_of
from seriatim.stores.places import DEFAULT as AUDIT_LOG

GUARDED: Final = "get-build-convention"
FIRST: Final = "list-build-conventions"
QUESTION: Final = "How do console screens confirm?"
RECOVERY: Final = [(GUARDED, "refused"), (FIRST, "completed"), (GUARDED, "completed")]


class Story:
    """Tells the demo in a workspace that has been unpacked for it."""

    def __init__(self, page: Page, place: Path) -> None:
        self._page: Final = page
        self._place: Final = place
        self._before: Final = place / "topologies" / "asked.yaml"
        self._after: Final = place / "topologies" / "ordered.yaml"
        self._asked: Final = self._play("asked", "--run", "asked")
        self._ordered: Final = self._play("ordered", "--run", "ordered")
        self._gateway: Final = self._visit(place, "ordered", "gateway")
        self._by_hand: Final = self._visit(
            place / "by-hand" / "topology.yaml", "by-hand", "by-hand"
        )
        self._log: Final = seriatim("logs", str(place), "--run", "ordered")
        self._printed: dict[Command, Printed] = {}

    async def tell(self) -> None:
        """Run the commands, and tell what they did.

        Raises:
            DemoError: when a command fails, or something claimed is not so.
        """
        self._page.prose(
            f"The workspace of this demo is {self._place}; it stays there. Its MCP server is real "
            "and runs on stdio. A script plays the model, so that no key is needed. A moment ..."
        )
        # Side by side, because most of their time is Python's start.
        runs = [self._asked, self._ordered, self._gateway, self._by_hand]
        self._printed |= await perform(runs)
        self._printed |= await perform([self._log])
        self._the_failure()
        self._the_fix()
        self._through_the_gateway()
        self._the_old_way()
        self._what_next()

    def _the_failure(self) -> None:
        self._page.heading("1. The failure: the prompt asks for an order, and nothing holds it")
        self._page.prose(
            f"The prompt says: IMPORTANT: call {FIRST} before anything else. The agent goes "
            "straight for what it wants."
        )
        self._show(self._asked)
        rows = self._recorded("asked")
        _check(_steps(rows) == [(GUARDED, "completed")], "the agent skips what it is asked to do")
        count = sum(row.skill == FIRST for row in rows)
        self._page.found(f"{FIRST} was called {count} times; {GUARDED} answered all the same.")

    def _the_fix(self) -> None:
        lines = rule_lines(self._before, self._after)
        self._page.heading(f"2. The fix: {len(lines)} lines of topology")
        self._page.file(rule_in_place(self._before, self._after))
        self._page.prose("The same agent, the same prompt, the same script:")
        self._show(self._ordered)
        self._page.prose("The audit log of that run:")
        self._show(self._log)
        _check(
            _steps(self._recorded("ordered")) == RECOVERY,
            "the agent is refused, does what it is told, and succeeds",
        )
        self._page.prose("What the agent was told:")
        self._page.refusal(self._recorded("ordered")[0].reason or "")
        self._page.found("The agent was refused, did what it was told, and succeeded.")

    def _through_the_gateway(self) -> None:
        self._page.heading("3. The same through the gateway, for any harness that speaks MCP")
        self._page.prose(
            "harness.py is a plain MCP client, in the place of Claude Code or Codex. It starts the "
            "gateway as its server."
        )
        self._show(self._gateway)
        rows = self._recorded("gateway")
        _check(
            _steps(rows) == RECOVERY, "the harness is refused, does what it is told, and succeeds"
        )
        told = {
            self._seen(self._gateway).calls[0].text,
            rows[0].reason,
            self._recorded("ordered")[0].reason,
        }
        _check(len(told) == 1, "harness, model and log have the same refusal")
        self._page.found("The harness was refused in the same words, and recovered.")

    def _the_old_way(self) -> None:
        self._page.heading("4. The old way: a server that holds the order by hand")
        self._page.prose(
            "by-hand/server.py is the same server before: every tool takes a signed "
            "acknowledgement and gives the next one, and the agent carries it from call to call."
        )
        self._show(self._by_hand)
        visits = self._seen(self._by_hand), self._seen(self._gateway)
        stopped = [[call.is_error for call in visit.calls] for visit in visits]
        servers = self._place / "by-hand" / "server.py", self._place / "server.py"
        lines = [code_lines(server) for server in servers]
        acks = [arguments_named(visit.schemas, "ack") for visit in visits]
        denied = [
            sum(row.policy_decision == "deny" for row in rows)
            for rows in (
                recorded(self._place / "by-hand" / AUDIT_LOG, "by-hand"),
                self._recorded("gateway"),
            )
        ]
        rules = len(rule_lines(self._before, self._after))
        self._page.table(
            ("by hand", "by topology"),
            {
                "lines of server": lines,
                "lines of topology that hold the order": [0, rules],
                "`ack` arguments in the tools' schemas": acks,
                "calls out of order that were stopped": [sum(errors) for errors in stopped],
                "of these, on record as refused": denied,
            },
        )
        _check(stopped == [[True, False, False]] * 2, "the order holds, by hand and by topology")
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
        self._page.prose(f"The audit log is {self._place / AUDIT_LOG}.")
        for text, command in (
            ("Read it:", logs),
            ("See the trace of a run:", f"OTEL_TRACES_EXPORTER=console {again}"),
            (
                "Send the trace to a backend that takes OTLP, such as Jaeger:",
                f"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 {again}",
            ),
            (f"Misspell a skill in {self._after}, and be told where:", validate),
        ):
            self._page.suggestion(text, command)

    def _play(self, topology: str, *options: str) -> Command:
        script = self._place / "agent.yaml"
        place = str(self._place)
        return seriatim(
            *("run", place, "--topology", topology, "--script", str(script)),
            *("--input", QUESTION, *options),
        )

    def _visit(self, workspace: Path, topology: str, run: str) -> Command:
        options = ("--topology", topology, "--agent", "builder", "--run", run)
        return python(self._place / "harness.py", seriatim("gateway", str(workspace), *options))

    def _show(self, command: Command) -> None:
        printed = self._printed[command]
        self._page.command(command.shown)
        self._page.output(printed.stderr + printed.stdout)

    def _recorded(self, run: str) -> list[AuditRecord]:
        return recorded(self._place / AUDIT_LOG, run)

    def _seen(self, command: Command) -> Visit:
        return visit_of(self._printed[command].stdout)


def _steps(rows: list[AuditRecord]) -> list[tuple[str, str]]:
    return [(row.skill, row.outcome) for row in rows]


def _check(holds: bool, claim: str) -> None:
    if not holds:
        raise DemoError(f"this was to be seen, and was not: {claim}")
