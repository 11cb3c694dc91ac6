"""Delegation: one agent hands a task to a child of its, as a call that is audited and not gated."""

from datetime import datetime
from typing import Final

from pydantic_ai.tools import ToolDefinition

from interceptors import (
    UNKNOWN_TO_ALL,
    AuditInterceptor,
    BrokenArguments,
    Completed,
    DecisionId,
    Failed,
    InvalidArguments,
    LimitReached,
    NoTool,
    Outcome,
    Raised,
    Refused,
    Scope,
    SkillId,
    ToolCall,
    ToolError,
    ToolResult,
    Via,
    new_id,
    no_trace,
)
from seriatim.runtime.answers import Ask, NoAnswerError
from seriatim.runtime.dispatch import Request
from seriatim.runtime.events import DelegationEnded, DelegationIssued, Listener
from seriatim.runtime.run import Run
from seriatim.topology.models import Agent
from telemetry import current_trace


def delegation_tool(child: Agent) -> ToolDefinition:
    """Return the tool under which an agent sees its child."""
    return ToolDefinition(
        name=child.id,
        description=child.description or f"Hands a task to the agent {child.id}.",
        parameters_json_schema={
            "type": "object",
            "properties": {
                "task": {"type": "string", "description": "What the agent is to do, in full."}
            },
            "required": ["task"],
            "additionalProperties": False,
        },
    )


class Delegation:
    """Hands the tasks of one agent to one of its children.

    Counts towards the run's allowance, which would else not bound two agents that only talk.
    """

    def __init__(self, run: Run, parent: Agent, child: Agent, ask: Ask, tell: Listener) -> None:
        self._scope: Final = Scope(run.id, parent.id)
        self._child: Final = child
        self._ask: Final = ask
        self._tell: Final = tell
        self._allowance: Final = run.allowance
        self._audit: Final = AuditInterceptor(
            run.audit,
            run.topology.name,
            run.redactor,
            hidden={},
            event_type="agent.delegated",
            current_trace=current_trace if run.observers.telemetry.traces else no_trace,
            fail_open=run.workspace.settings.fail == "open",
        )

    async def __call__(self, request: Request, issued: datetime) -> Outcome:
        """Return the child's answer as a result.

        Args:
            issued: when the parent issued the turn, in UTC; the task may have queued since.

        Raises:
            NoAnswerError: when the child gave no answer; the row is written all the same.
        """
        call = ToolCall(
            id=request.id,
            decision=DecisionId(new_id()),
            scope=self._scope,
            skill=SkillId(self._child.id),
            tool=NoTool(),
            arguments=request.arguments,
            via=Via.MODEL,
            standing=UNKNOWN_TO_ALL,
            issued=issued,
        )
        errors: list[NoAnswerError] = []

        async def hand_over(call: ToolCall, /) -> Outcome:
            if not self._allowance.take():
                return Refused(LimitReached(self._allowance.limit))
            try:
                return await self._hand_over(call)
            except NoAnswerError as error:
                errors.append(error)
                return Failed(Raised("model", str(error)))

        self._tell(DelegationIssued(call))
        outcome = await self._audit(call, hand_over)
        self._tell(DelegationEnded(call, outcome))
        for error in errors:
            raise error
        return outcome

    async def _hand_over(self, call: ToolCall) -> Outcome:
        match call.arguments:
            case BrokenArguments(_, problem):
                return Failed(InvalidArguments(problem))
            case {"task": str(task)} as arguments if task.strip() and len(arguments) == 1:
                answer = await self._ask(task)
                return Completed(_written(answer))
            case _:
                text = f"{self._child.id} takes one argument, `task`: a text that is not empty."
                return Failed(ToolError(_written(text)))


def _written(text: str) -> ToolResult:
    return ToolResult(({"type": "text", "text": text},))
