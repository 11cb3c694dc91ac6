"""The resources and prompts of the corpus server, under names of its own and one that all share."""

from typing import Any

Json = dict[str, Any]

SHARED = "mem:shared"


def answer(name: str, method: str, params: Json) -> Json | None:
    """Return the result of a request to the server `name`; nothing for what is not there."""
    match method:
        case "resources/list":
            if "cursor" not in params:
                return {"resources": [_resource(f"mem:{name}/one")], "nextCursor": "2"}
            return {"resources": [_resource(SHARED)]}
        case "resources/templates/list":
            template = {"uriTemplate": f"mem:{name}/{{id}}", "name": "any", "odd": [None]}
            return {"resourceTemplates": [template]}
        case "resources/read":
            uri = params["uri"]
            if uri != SHARED and not uri.startswith(f"mem:{name}/"):
                return None
            text = {"uri": uri, "text": f"{uri} of {name} ☃", "mimeType": "text/plain", "odd": 1}
            return {"contents": [text, {"uri": uri, "blob": "AAEC"}], "_meta": {"a/b": {"c": None}}}
        case "prompts/list":
            return {"prompts": [_prompt(f"only-{name}"), _prompt("shared")]}
        case "prompts/get":
            if params["name"] not in (f"only-{name}", "shared"):
                return None
            said = f"{params['name']} of {name}: {params.get('arguments')}"
            message = {"role": "user", "content": {"type": "text", "text": said, "odd": {}}}
            return {"messages": [message], "description": "d"}
        case "completion/complete":
            said = f"{params['ref'].get('name') or params['ref'].get('uri')} of {name}"
            return {"completion": {"values": [said], "total": 1, "hasMore": False}}
    return None


def _resource(uri: str) -> Json:
    return {
        "uri": uri,
        "name": "a resource",
        "size": 3,
        "annotations": {"priority": 1.0},
        "icons": [{"src": "data:,x"}],
        "odd": {"kept": None},
    }


def _prompt(name: str) -> Json:
    argument = {"name": "who", "required": True, "odd": 1}
    return {"name": name, "title": "A prompt", "arguments": [argument], "odd": "kept"}
