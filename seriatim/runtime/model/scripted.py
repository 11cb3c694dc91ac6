"""A model that plays a script, for tests and demos: it needs no network and no key.

It goes through the same loop as any model, and knows of a refusal what a model knows: its text.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, assert_never, final

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.settings import ModelSettings

from interceptors import AgentId, JsonObject
from seriatim.runtime.model.providers import ChosenModel
from seriatim.runtime.model.script import Calls, Retry, Say, Script, ScriptedCall

# The words of `interceptors.texts`: what to read, what to call in which order, and to retry.
_REMEDY: Final = re.compile(
    r"\S+ requires .*?\. "
    r"(?:[Rr]ead the results? of (?P<awaited>(?:(?!, then ).)+?)(?:, then )?)?"
    r"(?:[Cc]all (?P<layers>.+?) (?:first|again))?"
    r", then retry\.",
    re.DOTALL,
)


class ScriptPlayError(Exception):
    """A script cannot go on: it has no turns for an agent, or nothing to retry."""


@final
@dataclass(frozen=True, slots=True)
class _Refusal:
    """A call that was refused, and the remedy that the refusal's text named."""

    call: ScriptedCall
    layers: tuple[tuple[str, ...], ...]


def scripted_model(script: Script, agent: AgentId) -> ChosenModel:
    """Return the model that plays an agent's part of a script, from the beginning."""
    model = FunctionModel(_Part(script, agent).play, model_name="scripted")
    return ChosenModel("scripted", model, ModelSettings(), frozenset())


class _Part:
    """One agent's part of a script, and how far it has been played."""

    def __init__(self, script: Script, agent: AgentId) -> None:
        self._agent: Final = agent
        self._has_turns: Final = agent in script
        self._turns: Final = deque(script.get(agent, ()))
        self._calls = 0

    async def play(self, messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        """Return the next turn; the empty text once there is none."""
        if not self._has_turns:
            raise ScriptPlayError(f"the script has no turns for agent `{self._agent}`")
        while self._turns:
            match self._turns.popleft():
                case Say(text):
                    return ModelResponse(parts=[TextPart(text)])
                case Calls(calls):
                    return ModelResponse(parts=[self._part(call) for call in calls])
                case Retry(arguments):
                    self._turns.extendleft(reversed(self._remedied(messages, arguments)))
                case turn:
                    assert_never(turn)
        return ModelResponse(parts=[TextPart("")])

    def _remedied(
        self, messages: Sequence[ModelMessage], arguments: Mapping[str, JsonObject]
    ) -> list[Calls]:
        """Return the turns that the last refusals ask for, and then the refused calls again.

        None for an agent that was not refused: it has nothing to do over.
        """
        refusals = _last_refusals(messages)
        if not refusals:
            return []
        asked = {refusal.call.skill: refusal.call.arguments for refusal in refusals}
        given = {**asked, **arguments}
        steps = [
            Calls(tuple(ScriptedCall(skill, given.get(skill, {})) for skill in layer))
            for layer in _merged(refusals)
        ]
        again = (refusal.call for refusal in refusals)
        return [
            *steps,
            Calls(tuple(ScriptedCall(c.skill, arguments.get(c.skill, c.arguments)) for c in again)),
        ]

    def _part(self, call: ScriptedCall) -> ToolCallPart:
        self._calls += 1
        return ToolCallPart(call.skill, dict(call.arguments), f"{self._agent}-{self._calls}")


def remedy_of(text: str) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """Return the layers that a refusal's text says to call, in a tuple of one.

    Nothing for a text that names no way; no layers where only a result is to be read.
    """
    found = _REMEDY.fullmatch(text)
    if not found or not (found["awaited"] or found["layers"]):
        return ()
    layers = found["layers"].split(", then ") if found["layers"] else []
    return (tuple(tuple(layer.split(", ")) for layer in layers),)


def _last_refusals(messages: Sequence[ModelMessage]) -> list[_Refusal]:
    """Return the refusals of the last turn that had any, as the model reads them."""
    for response, results in reversed([*pairwise(messages)]):
        match response, results:
            case ModelResponse(), ModelRequest():
                if refusals := list(_refusals(response, results)):
                    return refusals
            case _:
                pass
    return []


def _refusals(response: ModelResponse, results: ModelRequest) -> Iterator[_Refusal]:
    calls = {call.tool_call_id: call for call in response.tool_calls}
    for part in results.parts:
        if isinstance(part, ToolReturnPart) and part.outcome == "failed":
            call = calls[part.tool_call_id]
            for layers in remedy_of(part.model_response_str(wrap_if_error=False)):
                again = ScriptedCall(call.tool_name, call.args_as_dict())
                yield _Refusal(again, layers)


def _merged(refusals: Sequence[_Refusal]) -> list[list[str]]:
    """Return the layers of several remedies as one row, each skill once, as late as any asks."""
    depths: dict[str, int] = {}
    for refusal in refusals:
        for depth, layer in enumerate(refusal.layers):
            for skill in layer:
                depths[skill] = max(depth, depths.get(skill, 0))
    return [
        [skill for skill, own in depths.items() if own == depth]
        for depth in sorted(set(depths.values()))
    ]
