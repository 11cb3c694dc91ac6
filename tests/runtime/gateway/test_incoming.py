"""JSON-RPC as it comes: whatever a client sends, whoever waits gets an answer."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import INVALID_REQUEST, PARSE_ERROR, JSONRPCRequest

from seriatim.runtime.gateway.incoming import BrokenAnswer, Message, Nothing, Reply, meaning_of


def request(arguments: str, id_: str = "1") -> bytes:
    params = f'{{"name": "echo", "arguments": {arguments}}}'
    return f'{{"jsonrpc": "2.0", "id": {id_}, "method": "tools/call", "params": {params}}}'.encode()


def test_a_message_is_a_message() -> None:
    match meaning_of(request('{"text": "é"}')):
        case Message(JSONRPCRequest(id=1, method="tools/call")):
            pass
        case other:
            pytest.fail(f"{other}")


@pytest.mark.parametrize(
    ("line", "id_", "code"),
    [
        (request(r'{"text": "\ud800"}'), 1, PARSE_ERROR),
        (request('{"number": ' + "9" * 5000 + "}", '"a"'), "a", PARSE_ERROR),
        (request('{"deep": ' + "[" * 100_000 + "]" * 100_000 + "}"), None, PARSE_ERROR),
        (request("{}", r'"\ud800"'), None, PARSE_ERROR),
        (request("{}", "9" * 5000), None, PARSE_ERROR),
        (request("{}", "[1]"), None, INVALID_REQUEST),
        (request("{}", "null"), None, INVALID_REQUEST),
        (request("{}", "1.5"), None, INVALID_REQUEST),
        (request("{}", "true"), None, INVALID_REQUEST),
        (b'{"jsonrpc": "1.0", "id": 3, "method": "ping"}', 3, INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": 4, "method": "ping", "params": [1]}', 4, INVALID_REQUEST),
        (b'[{"jsonrpc": "2.0", "id": 5, "method": "ping"}]', None, INVALID_REQUEST),
        (b"hello", None, PARSE_ERROR),
        (b"\x00", None, PARSE_ERROR),
        (b"7", None, INVALID_REQUEST),
    ],
)
def test_what_was_meant_as_a_request_is_answered_under_its_id_where_that_can_be_made_out(
    line: bytes, id_: object, code: int
) -> None:
    match meaning_of(line):
        case Reply(error):
            assert (error.id, error.error.code) == (id_, code)
            assert "Traceback" not in error.error.message
        case other:
            pytest.fail(f"{other}")


def test_a_broken_answer_ends_the_wait_for_it() -> None:
    match meaning_of(b'{"jsonrpc": "2.0", "id": 8, "result": {"text": "\\ud800"}}'):
        case BrokenAnswer(error):
            assert error.id == 8
        case other:
            pytest.fail(f"{other}")


def test_a_broken_notification_is_answered_by_nothing() -> None:
    line = b'{"jsonrpc": "2.0", "method": "notifications/x", "params": {"text": "\\ud800"}}'
    assert meaning_of(line) == Nothing()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
SHAPES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | JSON,
        "id": JSON,
        "method": st.text() | JSON,
        "params": JSON,
        "result": JSON,
        "error": JSON,
    },
)


@given(
    st.binary()
    | JSON.map(lambda value: json.dumps(value).encode())
    | SHAPES.map(lambda value: json.dumps(value).encode())
)
def test_no_line_is_an_accident(line: bytes) -> None:
    match meaning_of(line.decode(errors="replace").encode()):
        case Reply(error) | BrokenAnswer(error):
            error.model_dump_json(by_alias=True, exclude_unset=True)
        case Message() | Nothing():
            pass
