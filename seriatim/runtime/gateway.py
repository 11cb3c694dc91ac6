"""The gateway: an MCP server through which a harness reaches the tools of its agent.

One request is one turn. It knows no sessions: each registration has a server of its own. So both
eras of MCP are served alike.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import mcp_types
from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server
from opentelemetry import context as trace_context
from opentelemetry.context import Context
from starlette.requests import Request as HttpRequest

from interceptors import CallId, JsonObject, no_progress
from seriatim import __version__
from seriatim.runtime.dispatch import Request, always, governed_mcp_call
from seriatim.runtime.exchange import is_awaited
from seriatim.runtime.registrations import Registration
from seriatim.runtime.render import to_mcp
from seriatim.runtime.wire import application_entries
from telemetry.context import caller_context

Inbound: TypeAlias = ServerRequestContext[dict[str, Any], HttpRequest]
"""What the SDK knows of one request."""

Gateway: TypeAlias = Server[dict[str, Any]]
"""An MCP server that serves one registration."""

_log: Final = logging.getLogger(__name__)
_Params = TypeVar("_Params")
_Result = TypeVar("_Result")


def gateway_for(registration: Registration) -> Gateway:
    """Return a gateway that serves whoever speaks to it in the name of `registration`."""
    schemas = {tool.name: tool.input_schema for tool in registration.tools}

    async def list_tools(
        _inbound: Inbound, _params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListToolsResult:
        return mcp_types.ListToolsResult(tools=list(registration.tools))

    async def call_tool(
        inbound: Inbound, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult:
        with registration.calls.one_more():
            return await _call(registration, inbound, params)

    server: Gateway = Server(
        "seriatim",
        version=__version__,
        # Without it the SDK lists the tools before every call of the modern era, which costs more
        # than all the rest of the call.
        get_tool_input_schema=schemas.get,
        on_list_tools=_guarded(list_tools),
        on_call_tool=_guarded(call_tool),
    )
    # The SDK's server span would call every refusal an error, and stand between the caller's span
    # and the one of the attempt.
    server.middleware.clear()
    return server


async def _call(
    registration: Registration, inbound: Inbound, params: mcp_types.CallToolRequestParams
) -> mcp_types.CallToolResult:
    meta = _sent_meta(inbound)
    request = Request(
        id=CallId(str(inbound.request_id)),
        name=params.name,
        arguments=params.arguments or {},
        meta=application_entries(meta),
        # An upstream whose caller asks for no progress is not asked for it either.
        progress=inbound.session.report_progress if "progressToken" in meta else no_progress,
        awaited=partial(is_awaited, inbound.request) if inbound.request else always,
    )
    headers = inbound.request.headers if inbound.request else {}
    context = caller_context(meta, caller_context(headers, registration.context))
    with _attached(context):
        [outcome] = await governed_mcp_call(registration.agent, [request])
    return to_mcp(params.name, outcome)


def _sent_meta(inbound: Inbound) -> JsonObject:
    """Return the request's `_meta` under the keys that were sent."""
    meta: JsonObject = (inbound.params or {}).get("_meta") or {}
    return meta


@contextmanager
def _attached(context: Context) -> Iterator[None]:
    token = trace_context.attach(context)
    try:
        yield
    finally:
        trace_context.detach(token)


def _guarded(
    answer: Callable[[Inbound, _Params], Awaitable[_Result]],
) -> Callable[[Inbound, _Params], Awaitable[_Result]]:
    """Return a handler whose exceptions reach the client without their text.

    In the handshake era the SDK would send the text of any exception to the client.
    """

    async def guarded(inbound: Inbound, params: _Params) -> _Result:
        try:
            return await answer(inbound, params)
        except MCPError:
            raise
        except Exception as error:
            _log.error(
                "the gateway could not answer `%s`: %s", inbound.method, type(error).__name__
            )
            raise MCPError(mcp_types.INTERNAL_ERROR, "internal error of the gateway") from error

    return guarded
