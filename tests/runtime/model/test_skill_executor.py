"""What a model's calls become, and what it reads of each outcome."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import BinaryContent, ModelMessage, ModelResponse, ToolCallPart

from interceptors import BrokenArguments, CallId, Completed, Failed, ToolError, ToolResult
from seriatim.runtime.dispatch import Request
from seriatim.runtime.model.skill_executor import distinct, request_of
from seriatim.runtime.model.tool_return import to_tool_return
from tests.support.model_runs import Playing, play, reached, workspace_file

pytestmark = pytest.mark.anyio

ALL = """
agents:
  root:
    id: ann
    role: root
    skills: [list, fail, raise, slow, echo, picture, structured, forge, unicode]
    requires: {echo: [list]}
"""


@pytest.fixture
def anyio_backend() -> str:
    """Providers' clients run on asyncio only, and so does the command."""
    return "asyncio"


@pytest.mark.parametrize("arguments", [None, "", "{}", {}])
def test_no_arguments_are_the_empty_object(arguments: Any) -> None:
    assert request_of(ToolCallPart("list", arguments, "1")) == Request(CallId("1"), "list", {})


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ('{"a": ', "they are not valid JSON"),
        ("nonsense", "they are not valid JSON"),
        ('{"a": NaN}', "they are not valid JSON"),
        ("[" * 100_000, "they are not valid JSON"),
        ("[1, 2]", "they are a list"),
        ('"text"', "they are a string"),
        ("17", "they are a number"),
        ("true", "they are a boolean"),
        ("null", "they are null"),
    ],
)
def test_arguments_that_are_no_object_are_kept_as_they_were_sent(
    arguments: str, problem: str
) -> None:
    broken = BrokenArguments(arguments, problem)
    assert request_of(ToolCallPart("list", arguments, "1")).arguments == broken


def test_calls_under_one_id_get_ids_of_their_own() -> None:
    used: set[str] = set()
    turns = [["1", "1", ""], ["1", ""]]
    ids = [
        [call.tool_call_id for call in distinct([ToolCallPart("x", {}, i) for i in turn], used)]
        for turn in turns
    ]
    assert ids == [["1", "1-2", "call"], ["1-3", "call-2"]]


async def test_each_call_gets_its_one_result_whatever_it_was(tmp_path: Path) -> None:
    ann = Playing(
        [
            ("nothing", {}),
            ("list", "[1"),
            ("list", '"text"'),
            ("fail", {"text": "no"}),
            ("raise", {"code": -32050, "message": "custom"}),
            ("forge", {"text": "fine"}),
            ("echo", {}),
            ("list", None),
        ],
        "done",
    )
    played = await play(workspace_file(tmp_path, ALL), {"ann": ann})
    assert [(part.content, part.outcome) for part in ann.results()] == [
        (
            "nothing is not one of your tools. Your tools are list, fail, raise, slow, echo, "
            "picture, structured, forge, unicode.",
            "failed",
        ),
        (
            "list was not run: its arguments are no JSON object (they are not valid JSON).",
            "failed",
        ),
        ("list was not run: its arguments are no JSON object (they are a string).", "failed"),
        ("no", "failed"),
        ("raise failed: custom (code -32050).", "failed"),
        ("fine", "success"),
        (
            "echo requires list, which was called but whose result had not been returned when "
            "echo was called. Read the result of list, then retry.",
            "failed",
        ),
        ("console, card", "success"),
    ]
    response = ann.seen[-1][-2]
    assert isinstance(response, ModelResponse)
    sent = [call.tool_call_id for call in response.tool_calls]
    assert [part.tool_call_id for part in ann.results()] == sent
    assert len(played.records) == len(sent)
    assert sorted(reached(tmp_path)) == ["fail", "forge", "list_conventions", "raise"]


async def test_pictures_and_structure_reach_the_model(tmp_path: Path) -> None:
    ann = Playing([("picture", {}), ("structured", {}), ("unicode", {})], "done")
    await play(workspace_file(tmp_path, ALL), {"ann": ann})
    picture, structured, unicode = ann.results()
    text, image = picture.content
    assert text == "one pixel"
    assert isinstance(image, BinaryContent)
    assert (image.media_type, image.data[:4]) == ("image/png", b"\x89PNG")
    assert structured.content == {"n": 3}
    assert unicode.content == "naïve ☃ \u2028 \x1b[31mred\x1b[0m \x00 𝕏"


async def test_the_model_reads_the_same_arguments_that_reach_the_tool(tmp_path: Path) -> None:
    ann = Playing([("list", {})], [("echo", '{"q": [1, null, {"ü": "ß"}]}')], "done")
    await play(workspace_file(tmp_path, ALL), {"ann": ann})
    [text] = ann.texts()
    assert json.loads(text)["arguments"] == {"q": [1, None, {"ü": "ß"}]}


async def test_two_calls_under_one_id_both_run(tmp_path: Path) -> None:
    class Repeating(Playing):
        async def __call__(self, messages: list[ModelMessage], info: Any) -> ModelResponse:
            response = await super().__call__(messages, info)
            for call in response.tool_calls:
                call.tool_call_id = "same"
            return response

    ann = Repeating([("list", {}), ("forge", {"text": "x"})], [("list", {})], "done")
    played = await play(workspace_file(tmp_path, ALL), {"ann": ann})
    assert ann.texts(1) == ["console, card", "x"]
    assert sorted(row.call_id for row in played.records) == ["same", "same-2", "same-3"]


IMAGE = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}


def returned(*content: Any, **fields: Any) -> Any:
    outcome = Completed(ToolResult(content, fields))
    return to_tool_return(ToolCallPart("x", {}, "1"), outcome).content


@pytest.mark.parametrize(
    ("content", "fields", "read"),
    [
        ((), {}, ""),
        (({"type": "text", "text": "a"}, {"type": "text", "text": "b"}), {}, "a\nb"),
        (({"type": "text", "text": ""},), {}, ""),
        (
            ({"type": "text", "text": '{"n": 3}'},),
            {"structuredContent": {"n": 3}},
            '{"n": 3}',
        ),
        (
            ({"type": "text", "text": "three"},),
            {"structuredContent": {"n": 3}},
            ["three", {"n": 3}],
        ),
        ((), {"structuredContent": {"n": 3}}, {"n": 3}),
        (({"type": "resource", "resource": {"uri": "a:b", "text": "in it"}},), {}, "in it"),
        (({"type": "resource_link", "uri": "a:b", "name": "b"},), {}, "a:b"),
        (({"type": "audio", "data": "", "mimeType": "audio/wav"},), {}, "[audio]"),
        (({**IMAGE, "mimeType": "image/svg+xml"},), {}, "[image]"),
        (({**IMAGE, "data": "no base64!"},), {}, "[image]"),
    ],
)
def test_a_result_is_read_as_text_or_else_as_structure(
    content: tuple[Any, ...], fields: Any, read: Any
) -> None:
    assert returned(*content, **fields) == read


def test_a_picture_alone_is_the_result() -> None:
    assert returned(IMAGE) == BinaryContent(b"\x89PNG\r\n\x1a\n", media_type="image/png")


def test_a_failed_result_keeps_its_pictures_and_is_flagged() -> None:
    result = ToolResult(({"type": "text", "text": "see"}, IMAGE))
    part = to_tool_return(ToolCallPart("x", {}, "1"), Failed(ToolError(result)))
    assert (part.outcome, part.content[0], len(part.files)) == ("failed", "see", 1)
