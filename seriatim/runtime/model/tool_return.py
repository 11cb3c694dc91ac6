"""What a model reads of an outcome; `render` makes of the same what a harness reads.

Apart from it, because the gateway needs no pydantic-ai, which takes half a second to import.
"""

import base64
import json
from collections.abc import Sequence
from typing import Any, Final, assert_never

from pydantic_ai.messages import BinaryContent, ToolCallPart, ToolReturnPart

from interceptors import (
    Completed,
    Failed,
    JsonValue,
    Outcome,
    Refused,
    ToolError,
    ToolResult,
    text_of,
)

PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The kinds of pictures that models read."""


def to_tool_return(call: ToolCallPart, outcome: Outcome) -> ToolReturnPart:
    """Return the outcome of a model's call as the result that the model reads."""
    name = call.tool_name
    match outcome:
        case Completed(result):
            return ToolReturnPart(name, _readable(result), call.tool_call_id)
        case Failed(ToolError(result)):
            content = _readable(result)
            return ToolReturnPart(name, content, call.tool_call_id, outcome="failed")
        case Refused() | Failed():
            text = text_of(name, outcome)
            return ToolReturnPart(name, text, call.tool_call_id, outcome="failed")
        case _:
            assert_never(outcome)


def _readable(result: ToolResult) -> Any:
    """Return a result's text, or for want of it its structure, and its pictures.

    Structure beside a text that says the same is left out, as MCP means it to be; what a model
    cannot read is named.
    """
    texts: list[str] = []
    pictures: list[BinaryContent] = []
    for block in result.content:
        match block:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": "resource", "resource": {"text": str(text)}}:
                texts.append(text)
            case {"type": "resource_link", "uri": str(uri)}:
                texts.append(uri)
            case {"type": "image", "data": str(encoded), "mimeType": str(kind)} if (
                kind in PICTURES and (picture := _decoded(encoded))
            ):
                pictures.append(BinaryContent(picture, media_type=kind))
            case _:
                texts.append(f"[{block.get('type')}]")
    written = ["\n".join(texts)] if texts else []
    structure = result.fields.get("structuredContent")
    structures = [] if structure is None or _said(written, structure) else [structure]
    match [*written, *structures, *pictures]:
        case []:
            return ""
        case [single]:
            return single
        case several:
            return several


def _decoded(encoded: str) -> bytes:
    """Return the bytes that base64 stands for; nothing for what is no base64."""
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError:
        return b""


def _said(written: Sequence[str], structure: JsonValue) -> bool:
    """Return whether a text is the structure, written out."""
    try:
        return [json.loads(text) for text in written] == [structure]
    except (ValueError, RecursionError):
        return False
