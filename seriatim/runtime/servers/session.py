"""One session with a server, and what it lists of its tools with all that no model knows."""

from collections.abc import Mapping
from typing import Any, Final, Self, TypeVar, cast

from mcp import ClientSession
from mcp.client.session import MessageHandlerFnT
from mcp_types import (
    ClientRequest,
    Implementation,
    ListToolsResult,
    PaginatedRequestParams,
    Request,
    Tool,
)
from pydantic import (
    BaseModel,
    ModelWrapValidatorHandler,
    PrivateAttr,
    TypeAdapter,
    model_validator,
)

from seriatim import __version__
from seriatim.runtime.servers.asking import AskingDispatcher
from seriatim.runtime.servers.finite import is_finite

MOST_TOOLS: Final = 10_000
"""Tools beyond which a listing is not followed: pages that never end would fill the memory."""

_Result = TypeVar("_Result", bound=BaseModel)


class ListedTool(Tool):
    """A tool as its server lists it, beside the JSON that came."""

    _source: dict[str, Any] = PrivateAttr(default_factory=dict)

    @model_validator(mode="wrap")
    @classmethod
    def _keep_source(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        tool = handler(value)
        tool._source = value if isinstance(value, dict) else {}
        return tool

    def changed(self, fields: Mapping[str, Any]) -> "ListedTool":
        """Return the tool with other fields, named as on the wire."""
        return ListedTool.model_validate({**self._source, **fields}, by_name=False)

    def on_the_wire(self) -> dict[str, Any]:
        """Return the tool as JSON."""
        return self._source


class RelaySession(ClientSession):
    """The SDK's session, which reads tools as `ListedTool` and takes questions to clients.

    Args:
        hear: told of what the server says unasked.

    Attributes:
        dispatcher: knows the calls that are under way.
    """

    def __init__(self, dispatcher: AskingDispatcher, hear: MessageHandlerFnT) -> None:
        ours = Implementation(name="seriatim", version=__version__)
        super().__init__(dispatcher=dispatcher, client_info=ours, message_handler=hear)
        self.dispatcher: Final = dispatcher

    async def send_request(
        self,
        request: ClientRequest | Request[Any, Any],
        result_type: type[_Result] | TypeAdapter[_Result],
        *more: Any,
        **options: Any,
    ) -> _Result:
        chosen = cast("type[_Result]", _Page) if result_type is ListToolsResult else result_type
        return await super().send_request(request, chosen, *more, **options)


class _Page(ListToolsResult):
    tools: list[ListedTool]  # type: ignore[assignment]  # the SDK only reads the list


async def list_tools(session: RelaySession) -> Mapping[str, ListedTool]:
    """Return a server's tools by name, whatever the number of pages.

    One whose definition cannot be passed on as JSON is left out, and called all the same.
    """
    tools: dict[str, ListedTool] = {}
    cursor = None
    while True:
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        listed = (cast("ListedTool", tool) for tool in page.tools)
        tools.update((tool.name, tool) for tool in listed if is_finite(tool.on_the_wire()))
        cursor = page.next_cursor
        if cursor is None or len(tools) >= MOST_TOOLS:
            return tools
