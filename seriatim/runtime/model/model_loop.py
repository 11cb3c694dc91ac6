"""The model loop: an agent's conversation with its model, and a run of a whole topology.

Its own, and short, on `pydantic_ai.direct`: the ready-made agent loop would judge some calls before
the gate sees them, spend a retry budget on refusals, and knows no turns.
"""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, assert_never, final

import mcp_types
from opentelemetry.trace import Span
from pydantic_ai.direct import model_request
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from interceptors import AgentId, Scope, Via
from seriatim.runtime.answers import Ask, NoAnswerError
from seriatim.runtime.assembly import assemble
from seriatim.runtime.events import AgentAsked, AgentSaid, CallWatch, Listener
from seriatim.runtime.harness.executor import HarnessTasks
from seriatim.runtime.model.delegation import Delegation, delegation_tool
from seriatim.runtime.model.providers import ChosenModel, explain
from seriatim.runtime.model.skill_executor import SkillExecutor, distinct
from seriatim.runtime.run import Run
from seriatim.runtime.tools import advertised_tools
from seriatim.topology.models import Agent, HarnessExecutor
from telemetry.spans import record_response


@final
@dataclass(frozen=True, slots=True)
class Answered:
    """The root agent came to an end by itself."""

    text: str


@final
@dataclass(frozen=True, slots=True)
class CutOff:
    """The run used all its calls; the text is what the root agent said when it was told."""

    text: str
    limit: int


@final
@dataclass(frozen=True, slots=True)
class NoAnswer:
    """A model, or a harness, gave no answer."""

    problem: str


Ending: TypeAlias = Answered | CutOff | NoAnswer

Driver: TypeAlias = ChosenModel | HarnessExecutor
"""What drives an agent in a run, ready to be used."""


async def run_topology(
    run: Run, drivers: Mapping[AgentId, Driver], task: str, tell: Listener
) -> Ending:
    """Give the root agent its task, and return how the run ended.

    Args:
        drivers: what drives each agent of the topology.
        tell: told of all that happens.

    Raises:
        InterceptorError: when a user's interceptor cannot be had.
    """
    watch = CallWatch(tell)
    watched = replace(run.observers, watches=(*run.observers.watches, watch))
    run = replace(run, observers=watched)
    ask = _asking(run, run.topology.root, drivers, tell)
    async with AsyncExitStack() as clients:
        for driver in drivers.values():
            if isinstance(driver, ChosenModel):
                await clients.enter_async_context(driver.model)
        try:
            text = await ask(task)
        except NoAnswerError as error:
            return NoAnswer(str(error))
    if run.allowance.exceeded:
        return CutOff(text, run.allowance.limit)
    return Answered(text)


def _asking(run: Run, agent: Agent, drivers: Mapping[AgentId, Driver], tell: Listener) -> Ask:
    """Return the way to an agent that has not begun, its children's ready behind it."""
    match drivers[agent.id]:
        case ChosenModel() as chosen:
            delegations = {
                child.id: Delegation(run, agent, child, _asking(run, child, drivers, tell), tell)
                for child in agent.children
            }
            return _conversation(run, agent, chosen, delegations, tell).ask
        case HarnessExecutor() as harness:
            return HarnessTasks(run, agent, harness, tell).ask
        case driver:
            assert_never(driver)


def _conversation(
    run: Run,
    agent: Agent,
    chosen: ChosenModel,
    delegations: Mapping[AgentId, Delegation],
    tell: Listener,
) -> "Conversation":
    tools = [_definition(tool) for tool in advertised_tools(run, agent)]
    return Conversation(
        run,
        agent,
        chosen,
        SkillExecutor(assemble(run, agent, Via.MODEL), delegations),
        (*tools, *(delegation_tool(child) for child in agent.children)),
        tell,
    )


class Conversation:
    """What one agent and its model have said to each other; lives as long as the run.

    Each task continues it, so that what the agent has seen stays in its context. It takes one task
    at a time: only the parent gives tasks, and its skill executor queues them.
    """

    def __init__(
        self,
        run: Run,
        agent: Agent,
        chosen: ChosenModel,
        executor: SkillExecutor,
        tools: tuple[ToolDefinition, ...],
        tell: Listener,
    ) -> None:
        self._run: Final = run
        self._agent: Final = agent
        self._scope: Final = Scope(run.id, agent.id)
        self._chosen: Final = chosen
        self._executor: Final = executor
        self._parameters: Final = ModelRequestParameters(function_tools=list(tools))
        self._tell: Final = tell
        self._messages: Final[list[ModelMessage]] = []
        self._call_ids: Final[set[str]] = set()
        if agent.prompt:
            self._messages.append(ModelRequest(parts=[SystemPromptPart(agent.prompt)]))

    async def ask(self, task: str) -> str:
        """Give the agent a task, take it through its turns, and return the text it ends with.

        Once the run has used all its calls, the agent may answer once more, without tools.

        Raises:
            NoAnswerError: when its model, or a child's, gives no answer.
        """
        self._tell(AgentAsked(self._agent.id, task))
        self._messages.append(ModelRequest(parts=[UserPromptPart(task)]))
        with self._run.spans.agent(self._scope, self._run.topology.name):
            while True:
                last = self._run.allowance.exceeded
                response, span = await self._request(last=last)
                text = response.text or ""
                if text:
                    self._tell(AgentSaid(self._agent.id, text))
                calls = list(distinct(response.tool_calls, self._call_ids))
                if calls:
                    with self._run.spans.turn(span):
                        results = await self._executor.take(calls)
                    self._messages.append(ModelRequest(parts=results))
                if last or not calls:
                    return text

    async def _request(self, *, last: bool) -> tuple[ModelResponse, Span]:
        """Send the conversation to the model, add what it answers, and return it with its span."""
        settings = ModelSettings(**self._chosen.settings)
        if last:
            # Not an empty list of tools: some providers take no conversation about tools without.
            settings["tool_choice"] = "none"
        name = self._chosen.model.model_name
        with self._run.spans.model_request(self._scope, self._chosen.provider, name) as span:
            try:
                response = await model_request(
                    self._chosen.model,
                    self._messages,
                    model_settings=settings,
                    model_request_parameters=self._parameters,
                )
            except Exception as error:
                reason = explain(error, self._chosen.secrets)
                raise NoAnswerError(
                    f"the model of agent `{self._agent.id}` gave no answer: {reason}"
                ) from error
            record_response(
                span,
                model=response.model_name or "",
                input_tokens=response.usage.input_tokens,
                output_tokens=response.usage.output_tokens,
                finish_reasons=[response.finish_reason] if response.finish_reason else [],
            )
        self._messages.append(response)
        return response, span


def _definition(tool: mcp_types.Tool) -> ToolDefinition:
    schema: dict[str, Any] = tool.input_schema
    return ToolDefinition(
        name=tool.name,
        description=tool.description,
        parameters_json_schema=schema,
        # Else some providers' schemas are written anew, with every argument required.
        strict=False,
    )
