"""The gateway: an MCP server through which a harness reaches the tools of its agent.

One request is one turn. It knows no sessions: each registration has a server of its own. So both
eras of MCP are served alike.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, TypeAlias

import mcp_types
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp_types.methods import validate_client_request
from opentelemetry import context as trace_context
from opentelemetry.context import Context

from interceptors import Failed, InputRequired, Outcome
from seriatim import __version__
from seriatim.runtime.dispatch import Request, governed_mcp_call
from seriatim.runtime.gateway.advertising import ChangingServer
from seriatim.runtime.gateway.clients import (
    answers_to,
    capabilities_of,
    is_modern,
    request_of,
    sent_meta,
)
from seriatim.runtime.gateway.passage import CAPABILITIES, KINDS
from seriatim.runtime.gateway.registrations import Registration
from seriatim.runtime.gateway.relay import Inbound, Relay, unreached
from seriatim.runtime.render import WireResult, to_mcp
from telemetry.context import caller_context

Gateway: TypeAlias = Server[dict[str, Any]]
"""An MCP server that serves one registration."""

NEWEST: Final = ("resultType", "ttlMs", "cacheScope")
"""Fields of a result that the handshake era does not know."""
MOST_ROUNDS: Final = 8
"""How often one call may ask a client of the handshake era for input."""


def gateway_for(registration: Registration) -> Gateway:
    """Return a gateway that serves whoever speaks to it in the name of `registration`."""
    advertisement = registration.advertisement

    async def list_tools(inbound: Inbound) -> WireResult:
        advertisement.attend(inbound.session)
        return _listing(registration, inbound)

    async def call_tool(inbound: Inbound) -> WireResult:
        with registration.calls.one_more():
            return await _call(registration, inbound)

    async def pass_through(inbound: Inbound) -> WireResult:
        return await _passed(registration, inbound)

    def introduce(_inbound: Inbound, introduction: WireResult) -> WireResult:
        return _introduced(registration, introduction)

    server: Gateway = ChangingServer(
        "seriatim",
        version=__version__,
        # Without it the SDK lists the tools before every call of the modern era, which costs more
        # than all the rest of the call.
        get_tool_input_schema=advertisement.input_schema,
        on_list_tools=unreached,
        on_call_tool=unreached,
        on_list_resources=unreached,
        on_list_resource_templates=unreached,
        on_read_resource=unreached,
        on_list_prompts=unreached,
        on_get_prompt=unreached,
        on_completion=unreached,
        on_subscriptions_listen=advertisement.listen,
    )
    answers = {"tools/list": list_tools, "tools/call": call_tool}
    answers |= dict.fromkeys(KINDS, pass_through)
    # The SDK's server span, which stands there, would call every refusal an error, and come between
    # the caller's span and the one of the attempt.
    server.middleware[:] = [Relay(answers, introduce, server.server_info_stamp)]
    return server


def _listing(registration: Registration, inbound: Inbound) -> WireResult:
    """Return all tools as one page.

    Some clients read no second page; and how many there are the topology says, not the server.
    """
    if (inbound.params or {}).get("cursor") is not None:
        raise MCPError(mcp_types.INVALID_PARAMS, "there is no such page: the first holds all tools")
    return {"tools": [tool.on_the_wire() for tool in registration.tools], **_fresh(inbound)}


async def _passed(registration: Registration, inbound: Inbound) -> WireResult:
    """Answer a request for resources or prompts with what their server answers."""
    params = inbound.params or {}
    validate_client_request(inbound.method, inbound.protocol_version, params)
    sent = {key: value for key, value in params.items() if key != "cursor"}
    result = await registration.passage.answer(inbound.method, sent, capabilities_of(inbound))
    if is_modern(inbound):
        return {**_fresh(inbound), **result}
    if result.get("resultType") == "input_required":
        message = f"{inbound.method} asks for input, for which this client cannot be asked"
        raise MCPError(mcp_types.INVALID_REQUEST, message)
    return {key: value for key, value in result.items() if key not in NEWEST}


def _introduced(registration: Registration, introduction: WireResult) -> WireResult:
    """Return what the gateway says of itself, without what it does not show to this agent."""
    shown = {
        name: value
        for name, value in introduction["capabilities"].items()
        if name not in CAPABILITIES or registration.passage.passes(CAPABILITIES[name])
    }
    return {**introduction, "capabilities": shown}


def _fresh(inbound: Inbound) -> WireResult:
    """Return the fields by which a list says that it is this agent's, and to be asked for anew."""
    return {"ttlMs": 0, "cacheScope": "private"} if is_modern(inbound) else {}


async def _call(registration: Registration, inbound: Inbound) -> WireResult:
    request = request_of(inbound, registration.id)
    meta = sent_meta(inbound)
    headers = inbound.request.headers if inbound.request else {}
    context = caller_context(meta, caller_context(headers, registration.context))
    with _attached(context):
        outcome = await _outcome(registration, inbound, request)
    return to_mcp(request.name, outcome)


async def _outcome(registration: Registration, inbound: Inbound, request: Request) -> Outcome:
    """Make a call, and make it again with the answers for as long as its tool asks for input.

    A client of the newest protocol asks its user and calls again by itself.
    """
    for _ in range(MOST_ROUNDS):
        [outcome] = await governed_mcp_call(registration.agent, [request])
        match outcome:
            case Failed(InputRequired(question)) if not is_modern(inbound):
                told = await answers_to(inbound, question)
                request = replace(request, dialogue=replace(request.dialogue, told=told))
            case _:
                return outcome
    return outcome


@contextmanager
def _attached(context: Context) -> Iterator[None]:
    token = trace_context.attach(context)
    try:
        yield
    finally:
        trace_context.detach(token)
