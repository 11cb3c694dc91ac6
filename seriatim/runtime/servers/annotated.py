"""Permission where only the server knows whether its tool changes anything."""

from collections.abc import Mapping
from typing import Final, Protocol

from interceptors import Denied, Policy, SkillId, ToolCall, ToolRef, Verdict


class Annotations(Protocol):
    """Knows what servers say of their tools; `RunningServers` does."""

    async def reads_only(self, tool: ToolRef) -> bool:
        """Return whether the server lists a tool as read-only.

        Raises:
            ServerUnavailableError: when it has never listed its tools, and does not answer.
        """
        ...


class AnnotatedPolicy:
    """Asks the server about tools whose effect the workspace does not declare.

    Args:
        asked: the skills that hang on what the server says, with the verdict on those that it does
            not call read-only.
        policy: decides on all others, as if the server had called them so.
    """

    def __init__(
        self, asked: Mapping[SkillId, Denied], annotations: Annotations, policy: Policy
    ) -> None:
        self._asked: Final = asked
        self._annotations: Final = annotations
        self._policy: Final = policy

    async def decide(self, call: ToolCall, /) -> Verdict:
        match call.tool:
            case ToolRef() as tool if call.skill in self._asked:
                if not await self._annotations.reads_only(tool):
                    return self._asked[call.skill]
            case _:
                pass
        return await self._policy.decide(call)
