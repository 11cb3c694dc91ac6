"""What is read of a server's list of tools."""

from typing import Any, cast

import pytest

from seriatim.runtime.servers.session import ListedTool, RelaySession, list_tools

pytestmark = pytest.mark.anyio

TOOL = {"name": "t", "inputSchema": {"type": "object"}, "odd": {"kept": [None, 1.0]}}


class Page:
    def __init__(self, next_cursor: str | None, *tools: dict[str, Any]) -> None:
        self.tools = [ListedTool.model_validate(tool, by_name=False) for tool in tools]
        self.next_cursor = next_cursor


class Session:
    """Lists pages, each under the cursor that the one before it names."""

    def __init__(self, pages: dict[str | None, Page]) -> None:
        self._pages = pages

    async def list_tools(self, params: Any) -> Page:
        return self._pages[params.cursor]


async def test_all_pages_are_read() -> None:
    pages = {None: Page("2", TOOL | {"name": "a"}), "2": Page(None, TOOL | {"name": "b"})}
    assert list(await list_tools(cast("RelaySession", Session(pages)))) == ["a", "b"]


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
async def test_a_tool_that_no_json_holds_does_not_spoil_the_list(number: float) -> None:
    endless = TOOL | {"name": "endless", "inputSchema": {"default": [{"a": number}]}}
    tools = await list_tools(cast("RelaySession", Session({None: Page(None, endless, TOOL)})))
    assert list(tools) == ["t"]


def test_a_tool_keeps_what_no_model_knows() -> None:
    tool = ListedTool.model_validate(TOOL, by_name=False)
    assert tool.on_the_wire() == TOOL
    changed = tool.changed({"name": "other"})
    assert (changed.name, changed.on_the_wire()) == ("other", TOOL | {"name": "other"})
    assert tool.on_the_wire() == TOOL
