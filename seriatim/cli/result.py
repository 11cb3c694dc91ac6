"""What is printed when a run has ended: the text or the object on stdout, the rest on stderr."""

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import assert_never, final

import typer

from interceptors import AgentId, RunId
from seriatim.cli.lines import counted, escaped
from seriatim.cli.voice import FAILED, Format, say
from seriatim.runtime.events import Count
from seriatim.runtime.model.model_loop import Answered, CutOff, Ending, NoAnswer
from seriatim.stores.rows import json_text


@final
@dataclass(frozen=True, slots=True)
class Result:
    """How a run ended, and what its agents did."""

    run: RunId
    ending: Ending
    agents: Mapping[AgentId, Count]


def exit_code(ending: Ending) -> int:
    """Return 0 for a run that came to its end by itself, whatever was refused on the way."""
    match ending:
        case Answered():
            return 0
        case CutOff() | NoAnswer():
            return FAILED
        case _:
            assert_never(ending)


def print_result(result: Result, format_: Format) -> None:
    """Print the result, and say what went wrong. Text form is the last text and nothing else."""
    texts: tuple[str, ...] = ()
    match result.ending:
        case Answered(text):
            texts = (text,)
        case CutOff(text, limit):
            texts = (text,)
            say(f"error: the run has used its {limit} calls")
        case NoAnswer(problem):
            say(f"error: {escaped(problem)}")
        case _:
            assert_never(result.ending)
    match format_:
        case "json":
            agents = {agent: asdict(count) for agent, count in result.agents.items()}
            typer.echo(json_text({"run": result.run, "text": "".join(texts), "agents": agents}))
        case "text":
            for text in texts:
                # In colour, in the sense that nothing is taken out on the way to a file or a pipe.
                typer.echo(_printable(text), color=True)
        case _:
            assert_never(format_)


def summary(result: Result) -> str:
    """Return in one clause how much was called, refused and recovered from."""
    agents = result.agents.values()
    delegations = sum(agent.delegations for agent in agents)
    numbers = (
        counted(sum(agent.calls for agent in agents), "call", "calls"),
        *([counted(delegations, "delegation", "delegations")] if delegations else []),
        counted(sum(agent.refusals for agent in agents), "refusal", "refusals"),
        counted(sum(agent.recoveries for agent in agents), "recovery", "recoveries"),
    )
    return f"run {result.run}: {', '.join(numbers)}"


def _printable(text: str) -> str:
    """Return the text as it is; for a terminal, so that it moves no cursor."""
    if not sys.stdout.isatty():
        return text
    return "\n".join(
        "\t".join(escaped(cell) for cell in line.split("\t")) for line in text.split("\n")
    )
