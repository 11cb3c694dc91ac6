"""The skill executor: from what a model wishes to call to what it gets back."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import anyio
from pydantic_ai.messages import ToolCallPart, ToolReturnPart

from interceptors import AgentId, BrokenArguments, CallId, JsonObject, Outcome
from seriatim.runtime.answers import NoAnswerError
from seriatim.runtime.arguments import given_arguments, parsed_arguments
from seriatim.runtime.dispatch import GovernedAgent, Request, governed_mcp_call
from seriatim.runtime.model.delegation import Delegation
from seriatim.runtime.model.tool_return import to_tool_return


class SkillExecutor:
    """Takes the calls of one response, which are one turn, and gives each its one result.

    Args:
        agent: the agent whose calls they are.
        delegations: child's id -> the way to it; every other name goes through the gate.
    """

    def __init__(self, agent: GovernedAgent, delegations: Mapping[AgentId, Delegation]) -> None:
        self._agent: Final = agent
        self._delegations: Final = delegations

    async def take(self, calls: Sequence[ToolCallPart]) -> list[ToolReturnPart]:
        """Return one result for each call, in the order of the calls, whatever became of it.

        Skills and children run side by side; the tasks of one child queue.

        Raises:
            NoAnswerError: when a child gave no answer; the rest of the turn is cancelled.
        """
        skills: list[tuple[int, Request]] = []
        tasks: dict[AgentId, list[tuple[int, Request]]] = {}
        for index, call in enumerate(calls):
            child = AgentId(call.tool_name)
            queue = tasks.setdefault(child, []) if child in self._delegations else skills
            queue.append((index, request_of(call)))
        issued = datetime.now(UTC)
        outcomes: dict[int, Outcome] = {}
        errors: list[NoAnswerError] = []

        async def use(requests: list[tuple[int, Request]]) -> None:
            turn = [request for _, request in requests]
            for (index, _), outcome in zip(
                requests, await governed_mcp_call(self._agent, turn, issued), strict=True
            ):
                outcomes[index] = outcome

        async def delegate(child: AgentId, requests: list[tuple[int, Request]]) -> None:
            try:
                for index, request in requests:
                    outcomes[index] = await self._delegations[child](request, issued)
            except NoAnswerError as error:
                errors.append(error)
                turn.cancel_scope.cancel()

        async with anyio.create_task_group() as turn:
            if skills:
                turn.start_soon(use, skills)
            for child, requests in tasks.items():
                turn.start_soon(delegate, child, requests)
        for error in errors:
            raise error
        return [to_tool_return(call, outcomes[index]) for index, call in enumerate(calls)]


def request_of(call: ToolCallPart) -> Request:
    """Return the request that a model's call makes; what is no JSON object is kept as text."""
    return Request(CallId(call.tool_call_id), call.tool_name, _arguments(call.args))


def distinct(calls: Sequence[ToolCallPart], used: set[str]) -> Iterator[ToolCallPart]:
    """Yield the calls, each under an id that is not in `used` and that goes into it.

    Some models number the calls of each response from one, or give no id at all: two results under
    one id could not be told apart, and providers reject such a conversation.
    """
    for call in calls:
        id_, copies = call.tool_call_id or "call", 1
        while id_ in used:
            copies += 1
            id_ = f"{call.tool_call_id or 'call'}-{copies}"
        used.add(id_)
        call.tool_call_id = id_
        yield call


def _arguments(given: object) -> JsonObject | BrokenArguments:
    match given:
        case None | "":
            return {}
        case str(text):
            return parsed_arguments(text)
        case _:
            return given_arguments(given)
