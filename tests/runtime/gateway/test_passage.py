"""Resources and prompts of the granted servers, as the settings expose them."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pytest

from tests.support.raw_clients import Json, RawClient
from tests.support.relays import BACKS, FRONTS, Relays, canonical

pytestmark = pytest.mark.timeout(60)

METHODS: dict[str, Json] = {
    "resources/list": {},
    "resources/templates/list": {},
    "resources/read": {"uri": "mem:shared"},
    "prompts/list": {},
    "prompts/get": {"name": "shared"},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "shared"},
        "argument": {"name": "who", "value": ""},
    },
}
REFERENCE = {"argument": {"name": "who", "value": "z"}}


@pytest.fixture(scope="module")
def clients(wire: Relays) -> Iterator[Mapping[tuple[str, str], RawClient]]:
    """Clients by front and agent, and direct ones under their back and `=`."""
    with ExitStack() as stack:
        enter = stack.enter_context
        yield {
            **{(front, "bob"): enter(wire.through(front, "bob")) for front in FRONTS},
            **{(front, "cat"): enter(wire.through(front, "cat")) for front in HTTP},
            **{(front, "ada"): enter(wire.through(front, "ada")) for front in HTTP},
            **{(back, "="): enter(wire.direct(back)) for back in BACKS},
        }


HTTP = ["legacy-http", "modern-http"]


@pytest.fixture(params=FRONTS)
def bob(request: pytest.FixtureRequest, clients: Mapping[tuple[str, str], RawClient]) -> RawClient:
    """Is shown resources and prompts of all servers."""
    return clients[request.param, "bob"]


@pytest.fixture(params=HTTP)
def front(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def result(client: RawClient, method: str, **params: object) -> Json:
    return {**client.request(method, params)["result"]}


def test_lists_hold_what_the_servers_list_but_for_what_two_of_them_have(
    bob: RawClient, clients: Mapping[tuple[str, str], RawClient]
) -> None:
    direct = {back: clients[back, "="] for back in BACKS}
    resources = [result(client, "resources/list")["resources"] for client in direct.values()]
    assert result(bob, "resources/list")["resources"] == [one for [one] in resources]
    assert [one["uri"] for [one] in resources] == [f"mem:{back}/one" for back in BACKS]
    templates = [
        result(client, "resources/templates/list")["resourceTemplates"]
        for client in direct.values()
    ]
    listed = result(bob, "resources/templates/list")["resourceTemplates"]
    assert listed == [one for [one] in templates]
    prompts = {back: result(client, "prompts/list")["prompts"] for back, client in direct.items()}
    assert result(bob, "prompts/list")["prompts"] == [
        {**prompt, "name": name}
        for back, [own, shared] in prompts.items()
        for prompt, name in [(own, f"only-{back}"), (shared, f"{back}/shared")]
    ]


@pytest.mark.parametrize("back", BACKS)
def test_what_is_read_is_what_the_server_gives(
    bob: RawClient, clients: Mapping[tuple[str, str], RawClient], back: str
) -> None:
    for uri in (f"mem:{back}/one", f"mem:{back}/unlisted?x=ü"):
        ours = bob.request("resources/read", {"uri": uri})
        theirs = clients[back, "="].request("resources/read", {"uri": uri})
        assert same(ours) == same(theirs)
    name = f"only-{back}"
    ours = bob.request("prompts/get", {"name": name, "arguments": {"who": "zoë"}})
    theirs = clients[back, "="].request("prompts/get", {"name": name, "arguments": {"who": "zoë"}})
    assert same(ours) == same(theirs)


def same(message: Json) -> str:
    """Return an answer without the hints that only one of the eras has."""
    kept = {k: v for k, v in message["result"].items() if k not in ("ttlMs", "cacheScope")}
    return canonical({"result": kept})


def test_a_name_that_servers_share_is_told_apart_by_theirs(bob: RawClient) -> None:
    got = result(bob, "prompts/get", name="modern-http/shared", arguments={})
    assert got["messages"][0]["content"]["text"] == "shared of modern-http: {}"
    reference = {"ref": {"type": "ref/prompt", "name": "legacy-http/shared"}, **REFERENCE}
    completed = result(bob, "completion/complete", **reference)
    assert completed["completion"]["values"] == ["shared of legacy-http"]


def test_a_reference_to_a_template_is_completed_by_its_server(bob: RawClient) -> None:
    reference = {"ref": {"type": "ref/resource", "uri": "mem:modern-stdio/{id}"}, **REFERENCE}
    completed = result(bob, "completion/complete", **reference)
    assert completed["completion"]["values"] == ["mem:modern-stdio/{id} of modern-stdio"]


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("resources/read", {"uri": "mem:shared"}, "mem:shared"),
        ("prompts/get", {"name": "shared"}, "shared"),
    ],
)
def test_what_several_servers_have_is_a_clear_error(
    bob: RawClient, method: str, params: Json, name: str
) -> None:
    assert bob.request(method, params)["error"] == {
        "code": -32602,
        "message": f"`{name}` may be of `legacy-stdio` and `legacy-http` and `modern-stdio` and "
        "`modern-http`, and it cannot be told which is meant",
    }


def test_what_no_server_has_is_an_error(bob: RawClient) -> None:
    assert bob.request("prompts/get", {"name": "nowhere"})["error"] == {
        "code": -32602,
        "message": "Unknown prompt: nowhere",
    }
    error = bob.request("resources/read", {"uri": "mem:nowhere"})["error"]
    assert error["message"].startswith("legacy-stdio does not know resources/read")


def test_malformed_params_are_invalid(bob: RawClient) -> None:
    assert bob.request("resources/read", {"uri": 5})["error"]["code"] in (-32602, -32020)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_passes_that_is_not_exposed(
    clients: Mapping[tuple[str, str], RawClient], front: str, method: str
) -> None:
    error = clients[front, "ada"].request(method, METHODS[method])["error"]
    assert (error["code"], error["message"]) == (-32601, "Method not found")


def test_nothing_passes_from_a_server_of_which_the_agent_holds_no_skill(
    clients: Mapping[tuple[str, str], RawClient], front: str
) -> None:
    cat = clients[front, "cat"]
    uris = [each["uri"] for each in result(cat, "resources/list")["resources"]]
    assert uris == ["mem:legacy-stdio/one", "mem:shared"]
    shared = result(cat, "resources/read", uri="mem:shared")["contents"][0]["text"]
    assert shared == "mem:shared of legacy-stdio ☃"
    error = cat.request("resources/read", {"uri": "mem:modern-http/one"})["error"]
    assert error["message"].startswith("legacy-stdio does not know resources/read")
    assert cat.request("prompts/list", {})["error"]["code"] == -32601
    reference = {"ref": {"type": "ref/prompt", "name": "shared"}, **REFERENCE}
    assert cat.request("completion/complete", reference)["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("agent", "shown"),
    [
        ("ada", {"tools"}),
        ("bob", {"tools", "resources", "prompts", "completions"}),
        ("cat", {"tools", "resources", "completions"}),
    ],
)
def test_the_gateway_declares_what_it_shows(
    wire: Relays, front: str, agent: str, shown: set[str]
) -> None:
    with wire.through(front, agent) as client:
        assert set(client.introduction["capabilities"]) == shown
