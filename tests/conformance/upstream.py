"""The server that MCP's conformance tests expect to talk to, over stdio, on the SDK.

What each tool, resource and prompt has to say is laid down by the tests.
"""

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
import mcp_types as t
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

Context = Any
Params = t.CallToolRequestParams
Answer = t.CallToolResult
PIXEL: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SILENCE: Final = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
NOTHING: Final = {"type": "object", "properties": {}}


def text(value: str, *, is_error: bool = False) -> Answer:
    return Answer(content=[t.TextContent(type="text", text=value)], is_error=is_error)


def words(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def resource(uri: str, mime_type: str, content: str) -> t.EmbeddedResource:
    contents = t.TextResourceContents(uri=uri, mime_type=mime_type, text=content)
    return t.EmbeddedResource(type="resource", resource=contents)


IMAGE: Final = t.ImageContent(type="image", data=PIXEL, mime_type="image/png")


async def simple_text(_context: Context, _params: Params) -> Answer:
    return text("This is a simple text response for testing.")


async def image(_context: Context, _params: Params) -> Answer:
    return Answer(content=[IMAGE])


async def audio(_context: Context, _params: Params) -> Answer:
    return Answer(content=[t.AudioContent(type="audio", data=SILENCE, mime_type="audio/wav")])


async def embedded(_context: Context, _params: Params) -> Answer:
    content = "This is an embedded resource content."
    return Answer(content=[resource("test://embedded-resource", "text/plain", content)])


async def mixed(_context: Context, _params: Params) -> Answer:
    content = '{"test":"data","value":123}'
    return Answer(
        content=[
            t.TextContent(type="text", text="Multiple content types test:"),
            IMAGE,
            resource("test://mixed-content-resource", "application/json", content),
        ]
    )


async def logging(context: Context, _params: Params) -> Answer:
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        params = t.LoggingMessageNotificationParams(level="info", data=line)
        await context.session.send_notification(
            t.LoggingMessageNotification(params=params), related_request_id=context.request_id
        )
    return text("logged")


async def failing(_context: Context, _params: Params) -> Answer:
    return text("This tool intentionally returns an error for testing", is_error=True)


async def progress(context: Context, _params: Params) -> Answer:
    for done in (0, 50, 100):
        await context.session.report_progress(done, 100)
    return text("done")


async def sampling(context: Context, params: Params) -> Answer | t.InputRequiredResult:
    content = t.TextContent(type="text", text=(params.arguments or {})["prompt"])
    messages = [t.SamplingMessage(role="user", content=content)]
    if context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
        answer = await context.session.create_message(
            messages, max_tokens=100, related_request_id=context.request_id
        )
    elif params.input_responses:
        answer = params.input_responses["q"]
    else:
        wanted = t.CreateMessageRequestParams(messages=messages, max_tokens=100)
        return t.InputRequiredResult(input_requests={"q": t.CreateMessageRequest(params=wanted)})
    return text(f"LLM response: {answer.content.text}")


def eliciting(
    properties: dict[str, Any], form: str = "Elicitation completed: action={}, content={}"
) -> Callable[[Context, Params], Awaitable[Answer | t.InputRequiredResult]]:
    async def elicit(context: Context, params: Params) -> Answer | t.InputRequiredResult:
        message, schema = (params.arguments or {}).get("message", "Fill in."), words(**properties)
        if context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
            answer = await context.session.elicit_form(
                message, schema, related_request_id=context.request_id
            )
        elif params.input_responses:
            answer = params.input_responses["q"]
        else:
            wanted = t.ElicitRequestFormParams(message=message, requested_schema=schema)
            return t.InputRequiredResult(input_requests={"q": t.ElicitRequest(params=wanted)})
        return text(form.format(answer.action, answer.content))

    return elicit


STRING: Final = {"type": "string"}
OPTIONS: Final = ["option1", "option2", "option3"]
TITLED: Final = [
    {"const": f"value{number}", "title": f"{name} Option"}
    for number, name in enumerate(("First", "Second", "Third"), 1)
]
PERSON: Final = {"username": STRING, "email": STRING}
DEFAULTS: Final = {
    "name": STRING | {"default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": STRING | {"enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
ENUMS: Final = {
    "untitledSingle": STRING | {"enum": OPTIONS},
    "titledSingle": STRING | {"oneOf": TITLED},
    "legacyEnum": STRING
    | {
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": STRING | {"enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}
DRAFT_2020: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {"type": "object", "properties": {"street": STRING, "city": STRING}},
    },
    "properties": {"name": STRING, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}
TOOLS: Final = {
    "test_simple_text": (NOTHING, simple_text),
    "test_image_content": (NOTHING, image),
    "test_audio_content": (NOTHING, audio),
    "test_embedded_resource": (NOTHING, embedded),
    "test_multiple_content_types": (NOTHING, mixed),
    "test_tool_with_logging": (NOTHING, logging),
    "test_error_handling": (NOTHING, failing),
    "test_tool_with_progress": (NOTHING, progress),
    "test_sampling": (words(prompt=STRING), sampling),
    "test_elicitation": (
        words(message=STRING),
        eliciting(PERSON, "User response: action={}, content={}"),
    ),
    "test_elicitation_sep1034_defaults": (NOTHING, eliciting(DEFAULTS)),
    "test_elicitation_sep1330_enums": (NOTHING, eliciting(ENUMS)),
    "json_schema_2020_12_tool": (DRAFT_2020, simple_text),
}


RESOURCES: Final = {
    "test://static-text": ("text/plain", "This is the content of the static text resource."),
    "test://static-binary": ("image/png", ""),
    "test://watched-resource": ("text/plain", "watched"),
}
TEMPLATE: Final = re.compile(r"test://template/(?P<id>[^/]+)/data")
PROMPTS: Final = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
}


async def list_tools(_context: Context, _params: Any) -> t.ListToolsResult:
    return t.ListToolsResult(
        tools=[
            t.Tool(name=name, description=f"The tool {name}.", input_schema=schema)
            for name, (schema, _) in TOOLS.items()
        ]
    )


async def call_tool(context: Context, params: Params) -> Answer | t.InputRequiredResult:
    _, perform = TOOLS[params.name]
    return await perform(context, params)


async def list_resources(_context: Context, _params: Any) -> t.ListResourcesResult:
    return t.ListResourcesResult(
        resources=[
            t.Resource(uri=uri, name=uri, description=f"The resource {uri}.", mime_type=mime_type)
            for uri, (mime_type, _) in RESOURCES.items()
        ]
    )


async def list_templates(_context: Context, _params: Any) -> t.ListResourceTemplatesResult:
    template = t.ResourceTemplate(uri_template="test://template/{id}/data", name="template")
    return t.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(
    _context: Context, params: t.ReadResourceRequestParams
) -> t.ReadResourceResult:
    uri = str(params.uri)
    if found := TEMPLATE.fullmatch(uri):
        data = {"id": found["id"], "templateTest": True, "data": f"Data for ID: {found['id']}"}
        return _text_contents(uri, "application/json", json.dumps(data))
    mime_type, content = RESOURCES[uri]
    if content:
        return _text_contents(uri, mime_type, content)
    blob = t.BlobResourceContents(uri=uri, mime_type=mime_type, blob=PIXEL)
    return t.ReadResourceResult(contents=[blob])


def _text_contents(uri: str, mime_type: str, content: str) -> t.ReadResourceResult:
    contents = t.TextResourceContents(uri=uri, mime_type=mime_type, text=content)
    return t.ReadResourceResult(contents=[contents])


async def accept(_context: Context, _params: Any) -> t.EmptyResult:
    return t.EmptyResult()


async def list_prompts(_context: Context, _params: Any) -> t.ListPromptsResult:
    return t.ListPromptsResult(
        prompts=[
            t.Prompt(
                name=name,
                description=f"The prompt {name}.",
                arguments=[t.PromptArgument(name=each, required=True) for each in arguments],
            )
            for name, arguments in PROMPTS.items()
        ]
    )


async def get_prompt(_context: Context, params: t.GetPromptRequestParams) -> t.GetPromptResult:
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            said: list[Any] = ["This is a simple prompt for testing."]
        case "test_prompt_with_arguments":
            said = [f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"]
        case "test_prompt_with_image":
            said = [IMAGE, "Please analyze the image above."]
        case _:
            content = "Embedded resource content for testing."
            embedded = resource(given["resourceUri"], "text/plain", content)
            said = [embedded, "Please process the embedded resource above."]
    return t.GetPromptResult(
        messages=[
            t.PromptMessage(
                role="user",
                content=t.TextContent(type="text", text=each) if isinstance(each, str) else each,
            )
            for each in said
        ]
    )


async def complete(_context: Context, _params: Any) -> t.CompleteResult:
    return t.CompleteResult(completion=t.Completion(values=["paris"], total=1, has_more=False))


def server() -> Server[Any]:
    return Server(
        "conformance",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=accept,
        on_unsubscribe_resource=accept,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_set_logging_level=accept,
    )


async def main() -> None:
    async with stdio_server() as (incoming, outgoing):
        chosen = server()
        await chosen.run(incoming, outgoing, chosen.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
