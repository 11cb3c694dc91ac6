"""What the corpus server answers, each in the very bytes that it writes."""

import json
from typing import Any, Final

PIXEL: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwAD"
    "hgGAWjR9awAAAABJRU5ErkJggg=="
)
TEXT: Final = {"type": "text", "text": "words"}
DEEP: Final = 100
"""Levels of nesting that every JSON reader of the chain reads."""


def _text(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


RESULTS: Final[dict[str, Any]] = {
    "text": _text("words"),
    "several-texts": {"content": [TEXT, {"type": "text", "text": ""}, TEXT]},
    "image": {"content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]},
    "audio": {"content": [{"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}]},
    "resource-link": {
        "content": [
            {
                "type": "resource_link",
                "uri": "file:///a%20b/ü?x=1#y",
                "name": "link",
                "title": "A link",
                "description": "Leads somewhere.",
                "mimeType": "text/plain",
                "size": 12,
                "icons": [{"src": "https://example.com/i.png", "sizes": ["48x48"]}],
                "_meta": {"example.com/rank": 1},
            }
        ]
    },
    "embedded-text": {
        "content": [
            {
                "type": "resource",
                "resource": {"uri": "mem:1", "text": "inside", "mimeType": "text/plain"},
                "annotations": {"audience": ["user", "assistant"], "priority": 1},
            }
        ]
    },
    "embedded-blob": {
        "content": [
            {
                "type": "resource",
                "resource": {"uri": "mem:2", "blob": "AAEC", "_meta": {"example.com/sum": "a"}},
            }
        ]
    },
    "structured": {"content": [], "structuredContent": {"n": 3, "deep": [{"x": None}, []]}},
    "structured-and-text": {"content": [_text("3")["content"][0]], "structuredContent": {"n": 3}},
    "error": _text("it went wrong") | {"isError": True},
    "error-with-structure": {
        "content": [TEXT],
        "structuredContent": {"code": 7, "detail": None},
        "isError": True,
    },
    "explicit-success": _text("words") | {"isError": False},
    "result-meta": _text("words") | {"_meta": {"example.com/trace": {"a": [1, None, "x"]}}},
    "block-meta": {"content": [TEXT | {"_meta": {"example.com/line": 4}}]},
    "annotations": {
        "content": [
            TEXT
            | {
                "annotations": {
                    "audience": ["assistant"],
                    "priority": 0.5,
                    "lastModified": "2026-01-12T15:00:58Z",
                }
            }
        ]
    },
    "unknown-fields": {
        "content": [TEXT | {"colour": "red"}],
        "extra": {"kept": True},
        "annotations": 5,
    },
    "nulls": {"content": [TEXT], "structuredContent": {"a": None}, "extra": None},
    "empty": {"content": []},
    "empty-text": _text(""),
    "astral": _text("\U0001d54f \U0001f468\u200d\U0001f469\u200d\U0001f467"),
    "combining": _text("\u00e9 e\u0301 a\u0300\u0301\u0302"),
    "controls": _text("\x00\x01\x1b[31m\x7f\r\n\t\x85\u2028\u2029\ufeff"),
    "bidi": _text("\u202eevil\u202c \u2066x\u2069 \u05e9"),
    "noncharacters": _text("\uffff\ufdd0 \U0010ffff"),
    "keys": {"content": [], "structuredContent": {"": 1, "\u00e9": 2, "e\u0301": 3, "\x00": 4}},
    "deep": {"content": [], "structuredContent": {"d": json.loads("[" * DEEP + "]" * DEEP)}},
}
"""Results that are like any other JSON."""

ODD_RESULTS: Final[dict[str, str]] = {
    "big-integers": '{"content":[],"structuredContent":{"n":[9007199254740993,-9007199254740993,'
    "18446744073709551616,123456789012345678901234567890]}}",
    "floats": '{"content":[],"structuredContent":{"n":[0.1,-0.0,1e308,5e-324,1.0,2.5E3,'
    "3.141592653589793]}}",
    "escapes": r'{"content":[{"type":"text","text":"\u0041\/\ud835\udd4f\u2028"}]}',
    "order": '{"_meta":{"b":1,"a":2},"structuredContent":{"z":1,"a":2},"content":[]}',
}
"""Results whose spelling matters."""

HALF: Final = r'{"content":[{"type":"text","text":"x\ud800y"}]}'
"""Half a character, which JSON can write, and no text holds."""

UNFIT_RESULTS: Final[dict[str, str]] = {
    "infinite": '{"content":[],"structuredContent":{"n":1e400}}',
    "not-a-number": '{"content":[],"structuredContent":{"n":NaN}}',
    "abyss": '{"content":[],"structuredContent":{"n":' + "[" * 100_000 + "]" * 100_000 + "}}",
    "no-content": '{"structuredContent":{"n":1}}',
    "text-without-text": '{"content":[{"type":"text"}]}',
}
"""What no client can be given: the first three are no JSON that all read, the others no MCP."""

ERRORS: Final[dict[str, Any]] = {
    "custom": {"code": -32050, "message": "custom"},
    "with-data": {
        "code": -32051,
        "message": "custom",
        "data": {"k": [1, None, {"ü": "\U0001d54f"}]},
    },
    "data-of-text": {"code": 7, "message": "ümlaut\n\x00", "data": "words"},
    "data-false": {"code": -32602, "message": "Unknown tool: x", "data": False},
    "closed": {"code": -32000, "message": "Connection closed by my own choice", "data": 0},
    "internal": {"code": -32603, "message": ""},
    "url-elicitation": {
        "code": -32042,
        "message": "This request requires more information.",
        "data": {
            "elicitations": [
                {"mode": "url", "elicitationId": "1", "url": "https://example.com", "message": "go"}
            ]
        },
    },
}
"""Errors of JSON-RPC."""

_OUTPUT: Final = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

ODD_NAMES: Final = [
    "a.b/c:d",
    "a b ",
    " a b",
    "A B",
    "a__b",
    "caf\u00e9",
    "cafe\u0301",
    "CAF\u00c9",
    "\uff41",
    "\u200b",
    "\u202eabc",
    "\U0001d54f\n\t\x00",
    "=?base64?YQ==?=",
    "\"quoted\" 'twice'",
    "n" * 300,
    "5",
    "null",
]
"""Names of tools that somebody could take for one another, or for something else."""

TOOLS: Final[list[dict[str, Any]]] = [
    {
        "name": "give",
        "title": "Give",
        "description": "Gives the result of a name.",
        "inputSchema": {
            "type": "object",
            "properties": {"case": {"type": "string"}},
            "required": ["case"],
            "$defs": {"unused": {"const": None, "default": 1.0}},
        },
        "icons": [{"src": "data:image/png;base64,AA==", "mimeType": "image/png", "theme": "dark"}],
        "annotations": {"title": "Gives", "readOnlyHint": True, "openWorldHint": False, "odd": 1},
        "_meta": {"example.com/group": {"a": None}},
        "future": {"kept": [None, 1]},
    },
    {"name": "typed", "inputSchema": {"type": "object"}, "outputSchema": _OUTPUT},
    {
        "name": "fixed",
        "description": "",
        "inputSchema": {
            "type": "object",
            "properties": {"case": {"type": "string"}, "to": {"type": "string"}},
            "required": ["case", "to"],
            "additionalProperties": False,
        },
    },
    {"name": "fault", "inputSchema": {"type": "object"}},
    {"name": "large", "inputSchema": {"type": "object"}},
    {"name": "echo", "inputSchema": {"type": "object"}},
    {"name": "steps", "inputSchema": {"type": "object"}},
    {"name": "wait", "inputSchema": {"type": "object"}},
    {"name": "ask", "inputSchema": {"type": "object"}},
    *(
        {"name": name, "description": f"tool {number}", "inputSchema": {"type": "object"}}
        for number, name in enumerate(ODD_NAMES)
    ),
]


def large_text(size: int) -> str:
    """Return a text of `size` bytes, or up to a hundred fewer."""
    line = "All work and no play makes a relay, ü and 𝕏 included, a dull thing to look at.\t\n"
    return line * (size // len(line.encode()))


def result_text(case: str) -> str:
    """Return the bytes of a result, as text."""
    if case in ODD_RESULTS:
        return ODD_RESULTS[case]
    if case == "half":
        return HALF
    if case == "other-kind":
        return '{"resultType":"task","content":[]}'
    if case in UNFIT_RESULTS:
        return UNFIT_RESULTS[case]
    return json.dumps(RESULTS[case], ensure_ascii=False)
