"""Execution: the innermost handler, where the call goes to the server."""

from collections.abc import Mapping
from typing import Final, Protocol

import anyio

from interceptors.calls import (
    BrokenArguments,
    Dialogue,
    JsonObject,
    JsonValue,
    NoTool,
    Progress,
    SkillId,
    ToolCall,
    ToolRef,
)
from interceptors.outcomes import (
    Completed,
    Failed,
    GateUnavailable,
    InvalidArguments,
    Outcome,
    PermissionDenied,
    ProtocolError,
    Raised,
    Refused,
    ServerUnavailable,
    TimedOut,
)
from interceptors.redaction import Redactor
from interceptors.texts import clause

DEFAULT_TIMEOUT: Final = 60.0
"""Seconds that a tool may take where its skill does not say (DESIGN.md, section 7)."""

CHANGED: Final = "its definition changed since the run began"
"""Why a pinned tool is not permitted."""


class ServerUnavailableError(Exception):
    """The server did not start, died, or speaks no MCP.

    Attributes:
        server: its id.
        detail: what is known of the cause, as a clause.
    """

    def __init__(self, server: str, detail: str) -> None:
        super().__init__(f"server {server} is not available: {detail}")
        self.server: Final = server
        self.detail: Final = detail


class ToolChangedError(Exception):
    """The tool is pinned, and its definition is not what it was when the run began."""

    def __init__(self, server: str, tool: str) -> None:
        super().__init__(f"tool {tool} of server {server} has changed since the run began")


class ServerProtocolError(Exception):
    """The server answered with a JSON-RPC error; see `ProtocolError` for the attributes."""

    def __init__(self, code: int, message: str, data: tuple[JsonValue, ...] = ()) -> None:
        super().__init__(f"{message} (code {code})")
        self.code: Final = code
        self.message: Final = message
        self.data: Final = data


class Servers(Protocol):
    """Reaches MCP servers."""

    async def call(
        self,
        tool: ToolRef,
        arguments: JsonObject,
        meta: JsonObject,
        progress: Progress,
        dialogue: Dialogue,
    ) -> Completed | Failed:
        """Send one `tools/call` and return what came back.

        That is `Completed`, a `ToolError`, or `InputRequired`.

        Raises:
            ServerUnavailableError: when no answer can be had from the server.
            ToolChangedError: when the tool is pinned and has changed; nothing was sent then.
            ServerProtocolError: when the answer is a JSON-RPC error.
        """
        ...


class Execution:
    """Sends the call to its server, within the skill's time limit, once.

    Never tries again by itself: tools have side effects.

    Args:
        timeouts: seconds that each skill may take; 60 for a skill that is absent.
        redactor: blots secrets out of what exceptions say.
    """

    def __init__(
        self, servers: Servers, timeouts: Mapping[SkillId, float], redactor: Redactor
    ) -> None:
        self._servers: Final = servers
        self._redactor: Final = redactor
        self._timeouts: Final = timeouts

    async def __call__(self, call: ToolCall, /) -> Outcome:
        match call.tool, call.arguments:
            case NoTool(), _:
                return Refused(GateUnavailable("no tool stands behind this name"))
            case _, BrokenArguments(_, problem):
                return Failed(InvalidArguments(problem))
            case ToolRef() as tool, arguments:
                return await self._send(call, tool, arguments)

    async def _send(self, call: ToolCall, tool: ToolRef, arguments: JsonObject) -> Outcome:
        seconds = self._timeouts.get(call.skill, DEFAULT_TIMEOUT)
        with anyio.move_on_after(seconds):
            try:
                return await self._servers.call(
                    tool, arguments, call.meta, call.progress, call.dialogue
                )
            except ServerUnavailableError as error:
                return Failed(ServerUnavailable(error.server, error.detail))
            except ToolChangedError:
                return Refused(PermissionDenied(CHANGED))
            except ServerProtocolError as error:
                return Failed(ProtocolError(error.code, error.message, error.data))
            except Exception as error:  # noqa: BLE001  here exceptions become values
                return Failed(Raised("execution", clause(error, self._redactor.text)))
        return Failed(TimedOut(seconds))
