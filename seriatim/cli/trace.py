"""`seriatim trace`: prints a run as a tree, from the audit log. Needs no trace backend."""

import sys
from collections.abc import Iterable
from typing import Annotated, Final, TypeAlias, assert_never

import typer
from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from interceptors import AuditRecord
from seriatim.cli.lines import (
    counted,
    details,
    escaped,
    json_printable,
    name_shown,
    outcome_words,
    short_id,
    skill_shown,
)
from seriatim.cli.options import AuditPlace, WorkspacePath
from seriatim.cli.recorded import chosen_run, log_of
from seriatim.cli.tree import MODEL, AgentTree, Call, RunTree, Turn, run_tree, seconds_of
from seriatim.cli.voice import Format, say, takes_colour
from seriatim.stores.audit_log import open_audit_log
from seriatim.stores.errors import AuditStoreError

UNBOUNDED: Final = 1_000_000
"""Columns of what is no terminal: one line an item, however long it is, for programs to search."""

_Json: TypeAlias = dict[str, object]


def trace(
    path: WorkspacePath,
    run: Annotated[
        str, typer.Option(help="The run to print; the newest otherwise.", show_default=False)
    ] = "",
    format_: Annotated[Format, typer.Option("--format", help="How the tree is printed.")] = "text",
    audit: AuditPlace = "",
) -> None:
    """Print a run as a tree: agents, turns, calls, refusals with their reason, and recoveries.

    All of it comes from the audit log; no trace backend is needed. Below a delegation stand the
    turns of the agent to which the task was handed.

    Example: seriatim trace examples/conventions
    """
    with log_of(path, audit) as log, open_audit_log(log) as reader:
        records = reader.records({"run": chosen_run(reader, run)}, until=reader.end())
        try:
            tree = run_tree(records)
        except ValueError as error:
            raise AuditStoreError(f"the audit log `{log}` holds a broken row") from error
        match format_:
            case "json":
                typer.echo(json_printable(_run_object(tree)))
            case "text":
                typer.echo(_drawn(tree), nl=False)
            case _:
                assert_never(format_)
        say(_summary(tree))


def _summary(tree: RunTree) -> str:
    numbers = (
        counted(tree.calls, "call", "calls"),
        counted(tree.refusals, "refusal", "refusals"),
        counted(tree.recoveries, "recovery", "recoveries"),
        counted(tree.failures, "failure", "failures"),
    )
    return f"run {name_shown(tree.run)}: {', '.join(numbers)} in {tree.duration:.3f} s"


def _drawn(run: RunTree) -> str:
    """Return the tree as text: in colour and folded to its width on a terminal, and plain else."""
    console = Console(force_terminal=takes_colour(sys.stdout), highlight=False)
    if not sys.stdout.isatty():
        console.width = UNBOUNDED
    root = Tree(_run_line(run), guide_style="dim")
    start = seconds_of(run.time)
    for agent in run.agents:
        _add_turns(root.add(_agent_line(agent)), agent.turns, start)
    with console.capture() as captured:
        console.print(root)
    return captured.get()


def _add_turns(parent: Tree, turns: Iterable[Turn], start: float) -> None:
    """Add turns; one that is a single call takes no line of its own.

    Args:
        start: when the run began, in seconds since the epoch.
    """
    for turn in turns:
        head = f"turn {turn.number}  at {seconds_of(turn.time) - start:.3f} s  "
        match turn.calls:
            case [call]:
                _add_turns(parent.add(_call_line(call, head)), call.turns, start)
            case calls:
                branch = parent.add(Text(f"{head}{len(calls)} calls side by side"))
                for call in calls:
                    _add_turns(branch.add(_call_line(call)), call.turns, start)


def _run_line(run: RunTree) -> Text:
    return Text(
        f"run {name_shown(run.run)}  topology {name_shown(run.topology)}  "
        f"{escaped(run.time)}  {run.duration:.3f} s"
    )


def _agent_line(agent: AgentTree) -> Text:
    through = "" if agent.via == MODEL else f"  via {name_shown(agent.via)}"
    return Text.assemble((name_shown(agent.agent), "bold"), through)


def _call_line(call: Call, head: str = "") -> Text:
    record = call.record
    line = Text.assemble(
        f"{head}{skill_shown(record)}  ",
        (outcome_words(record), _style(record)),
        f"  {record.duration:.3f} s",
    )
    if record.outcome == "refused":
        line.append(f"  decision {short_id(record.decision_id)}")
    for recovery in call.recoveries:
        line.append("  ")
        line.append(f"RECOVERED in {counted(recovery.calls, 'call', 'calls')}", "bold green")
        line.append(f", learned from decision {short_id(recovery.refusal.decision_id)}")
    for detail in details(record):
        line.append(f"\n  {detail}")
    return line


def _style(record: AuditRecord) -> str:
    match record.outcome:
        case "refused":
            return "bold yellow"
        case "failed":
            return "red"
        case _:
            return ""


def _run_object(run: RunTree) -> _Json:
    return {
        "run": run.run,
        "topology": run.topology,
        "time": run.time,
        "duration": run.duration,
        "calls": run.calls,
        "refusals": run.refusals,
        "recoveries": run.recoveries,
        "failures": run.failures,
        "agents": [
            {"agent": agent.agent, "via": agent.via, "turns": _turn_objects(agent.turns)}
            for agent in run.agents
        ],
    }


def _turn_objects(turns: Iterable[Turn]) -> list[_Json]:
    return [
        {
            "turn": turn.number,
            "time": turn.time,
            "calls": [_call_object(call) for call in turn.calls],
        }
        for turn in turns
    ]


def _call_object(call: Call) -> _Json:
    record = call.record
    return {
        "event_type": record.event_type,
        "skill": record.skill,
        "call_id": record.call_id,
        "decision_id": record.decision_id,
        "outcome": record.outcome,
        "rule": record.rule,
        "reason": record.reason,
        "missing": record.missing,
        "error_kind": record.error_kind,
        "duration": record.duration,
        "trace_id": record.trace_id,
        "span_id": record.span_id,
        "recovered": [
            {"calls": recovery.calls, "refusal": recovery.refusal.decision_id}
            for recovery in call.recoveries
        ],
        "turns": _turn_objects(call.turns),
    }
