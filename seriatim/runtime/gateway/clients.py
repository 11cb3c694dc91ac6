"""The client behind a request of the gateway: what it calls, and how it is asked."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, cast

from mcp import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import INVALID_REQUEST, Request, ServerRequest
from mcp_types import methods as mcp_methods
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import RootModel, ValidationError

from interceptors import BrokenArguments, CallId, Dialogue, JsonObject, no_progress
from seriatim.runtime import dispatch
from seriatim.runtime.arguments import given_arguments
from seriatim.runtime.gateway.exchange import is_awaited
from seriatim.runtime.gateway.relay import Inbound
from seriatim.runtime.servers.asking import QUESTIONS
from seriatim.runtime.servers.wire import application_entries

TOLD: Final = ("inputResponses", "requestState")
"""The fields with which a call is made again whose tool had asked for input."""


class _Answer(RootModel[dict[str, Any]]):
    """A client's answer as it came."""


def request_of(inbound: Inbound, owner: str) -> dispatch.Request:
    """Return the call that a `tools/call` makes, however malformed: it is put on record as it came.

    Args:
        owner: tells the client's registration from every other.
    """
    params = inbound.params or {}
    meta = sent_meta(inbound)
    return dispatch.Request(
        id=CallId(str(inbound.request_id)),
        name=_name(params.get("name")),
        arguments=_arguments(inbound, params),
        meta=application_entries(meta),
        # An upstream whose caller asks for no progress is not asked for it either.
        progress=inbound.session.report_progress if "progressToken" in meta else no_progress,
        dialogue=Dialogue(
            capabilities=capabilities_of(inbound),
            owner=owner,
            ask=lambda method, params: ask(inbound, method, params),
            told={field: params[field] for field in TOLD if field in params},
        ),
        awaited=partial(is_awaited, inbound.request) if inbound.request else dispatch.always,
    )


def sent_meta(inbound: Inbound) -> JsonObject:
    """Return the request's `_meta` under the keys that were sent; nothing where it is no object."""
    meta = (inbound.params or {}).get("_meta")
    return meta if isinstance(meta, Mapping) else {}


def capabilities_of(inbound: Inbound) -> JsonObject:
    """Return what the client declares that servers may ask of it."""
    declared = inbound.session.client_capabilities
    if declared is None:
        return {}
    every = declared.model_dump(mode="json", by_alias=True, exclude_none=True)
    if "roots" in every:
        # That they have changed is not passed on.
        every["roots"] = {}
    return {name: every[name] for name in QUESTIONS.values() if name in every}


def is_modern(inbound: Inbound) -> bool:
    """Return whether the client speaks a protocol in which servers do not ask by requests."""
    return inbound.protocol_version in MODERN_PROTOCOL_VERSIONS


async def ask(inbound: Inbound, method: str, params: JsonObject) -> JsonObject:
    """Send a server's request to the client, as part of the request under way.

    Raises:
        MCPError: when the client answers with an error, or cannot be asked.
    """
    if is_modern(inbound):
        message = f"{method}: a client of {inbound.protocol_version} cannot be asked during a call"
        raise MCPError(INVALID_REQUEST, message)
    sent = {**params, "_meta": application_entries(_meta_of(params))}
    question = Request[dict[str, Any], str](method=method, params=sent)
    carrier = ServerMessageMetadata(related_request_id=inbound.request_id)
    # The SDK sends whatever has a method and params; its union of models would drop fields.
    request = cast("ServerRequest", question)
    answer = await inbound.session.send_request(request, _Answer, metadata=carrier)
    return answer.root


async def answers_to(inbound: Inbound, question: Mapping[str, Any]) -> JsonObject:
    """Ask the client all that a tool asks for, and return the fields with which to call it again.

    Raises:
        MCPError: when the client answers with an error, or cannot be asked.
    """
    told: dict[str, Any] = {}
    asked = question.get("inputRequests")
    if isinstance(asked, Mapping):
        told["inputResponses"] = {
            key: await _answer_to(inbound, request) for key, request in asked.items()
        }
    if "requestState" in question:
        told["requestState"] = question["requestState"]
    return told


async def _answer_to(inbound: Inbound, request: object) -> JsonObject:
    """Ask the client one thing, if it is one of those that it says it can answer."""
    match request:
        case {"method": str(method), **rest} if QUESTIONS.get(method) in capabilities_of(inbound):
            params = rest.get("params")
            return await ask(inbound, method, params if isinstance(params, Mapping) else {})
        case _:
            message = "the tool asks for something that the client cannot answer"
            raise MCPError(INVALID_REQUEST, message)


def _meta_of(params: JsonObject) -> JsonObject:
    meta = params.get("_meta")
    return meta if isinstance(meta, Mapping) else {}


def _name(sent: object) -> str:
    """Return the name of the tool; for what is no name, a text that no tool has for a name."""
    return sent if isinstance(sent, str) else f"({json.dumps(sent)})"


def _arguments(inbound: Inbound, params: Mapping[str, Any]) -> JsonObject | BrokenArguments:
    arguments = given_arguments({} if params.get("arguments") is None else params["arguments"])
    if isinstance(arguments, BrokenArguments):
        return arguments
    sound = {**params, "name": "", "arguments": {}}
    try:
        mcp_methods.validate_client_request(inbound.method, inbound.protocol_version, sound)
    except ValidationError as error:
        place = ".".join(str(part) for part in error.errors()[0]["loc"])
        return BrokenArguments(json.dumps(params), f"`{place}` is malformed")
    return arguments
