"""The stream of what happens in a run: one line an event, on stderr, as it happens."""

import json
import sys
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Final, assert_never

import typer

from interceptors import (
    BrokenArguments,
    Completed,
    Failed,
    Outcome,
    Redactor,
    Refused,
    ToolCall,
    text_of,
)
from seriatim.cli.lines import escaped
from seriatim.cli.voice import say, takes_colour
from seriatim.runtime.events import (
    AgentAsked,
    AgentSaid,
    CallEnded,
    CallIssued,
    DelegationEnded,
    DelegationIssued,
    Event,
)
from seriatim.topology import Topology

LONGEST: Final = 200
"""Characters that are shown of a text; a refusal is shown whole."""


class Progress:
    """A listener that prints.

    Names, arguments and texts come from models and tools: whatever they hold, an event takes
    exactly one line, moves no cursor, and shows no secret.

    Args:
        redactor: blots out secrets.
        topology: knows which arguments of which skills are not shown.
        write: receives the lines.
    """

    def __init__(
        self, redactor: Redactor, topology: Topology, write: Callable[[str], None] = say
    ) -> None:
        self._redactor: Final = redactor
        self._topology: Final = topology
        self._write: Final = write
        self._colour: Final = takes_colour(sys.stderr)

    def __call__(self, event: Event) -> None:
        match event:
            case AgentAsked(agent, task):
                self._line(agent, "asked", self._cut(task))
            case AgentSaid(agent, text):
                self._line(agent, "says", self._cut(text))
            case CallIssued(call) | DelegationIssued(call):
                self._line(call.scope.agent, "calls", f"{self._name(call)} {self._arguments(call)}")
            case CallEnded(call, outcome, recovered):
                self._ended(call, outcome, recovered=recovered)
            case DelegationEnded(call, outcome):
                self._ended(call, outcome, recovered=False)
            case _:
                assert_never(event)

    def _ended(self, call: ToolCall, outcome: Outcome, *, recovered: bool) -> None:
        agent, name = call.scope.agent, self._name(call)
        text = text_of(call.skill, outcome)
        match outcome:
            case Refused():
                shown = f"{name}: {self._redactor.plain(text)}"
                self._line(agent, "REFUSED", shown, typer.colors.YELLOW)
            case Failed():
                shown = f"{name}: {self._cut(text, self._hidden(call))}"
                self._line(agent, "failed", shown, typer.colors.RED)
            case Completed():
                shown = f"{name}: {self._cut(text, self._hidden(call))}"
                if recovered:
                    self._line(agent, "RECOVERED", shown, typer.colors.GREEN)
                else:
                    self._line(agent, "done", shown)
            case _:
                assert_never(outcome)

    def _line(self, agent: str, what: str, text: str, colour: str = "") -> None:
        word = f"{what:<9}"
        if colour and self._colour:
            word = typer.style(word, fg=colour, bold=True)
        # Whoever read the stream may have left; the run goes on.
        with suppress(BrokenPipeError):
            self._write(f"{escaped(agent)}  {word}  {escaped(text)}".rstrip())

    def _name(self, call: ToolCall) -> str:
        # Redacted: a name that is no skill is whatever a model wrote.
        return self._cut(call.skill)

    def _hidden(self, call: ToolCall) -> Collection[str]:
        skills = self._topology.agents[call.scope.agent].skills
        return next((skill.redact for skill in skills if skill.id == call.skill), ())

    def _arguments(self, call: ToolCall) -> str:
        match call.arguments:
            case BrokenArguments(text, _):
                return self._cut(text, self._hidden(call))
            case arguments if not arguments:
                return ""
            case arguments:
                shown = dict(self._redactor.inputs(arguments, self._hidden(call)))
                return _shortened(json.dumps(shown, ensure_ascii=False, default=str))

    def _cut(self, text: str, hidden: Collection[str] = ()) -> str:
        return _shortened(self._redactor.preview(text, hidden))


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
