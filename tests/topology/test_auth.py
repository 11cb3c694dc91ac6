from collections.abc import Callable

import pytest

from seriatim.topology import Workspace
from seriatim.topology.models import Auth

AGENTS = "agents: {root: {id: r}}\n"
LEAST = "issuer: https://id.example, audience: gw, keys: keys.json"


def test_the_least_that_is_needed_has_safe_defaults(
    workspace_of: Callable[[str], Workspace],
) -> None:
    workspace = workspace_of(f"{AGENTS}seriatim: {{auth: {{{LEAST}}}}}\n")
    assert workspace.settings.auth == (
        Auth(
            issuer="https://id.example",
            audience="gw",
            keys="keys.json",
            algorithms=("RS256", "ES256", "EdDSA"),
            leeway=30,
            agent_claim="seriatim_agent",
            run_claim="",
            agents={},
        ),
    )


def test_all_of_it_is_read(workspace_of: Callable[[str], Workspace]) -> None:
    text = """\
seriatim:
  auth:
    issuer: https://id.example/realm
    audience: https://gateway.example/mcp
    keys: https://id.example/realm/keys
    algorithms: [ES256]
    leeway: 1m
    claims: {agent: azp, run: job}
    agents: {client-7: r}
"""
    [auth] = workspace_of(AGENTS + text).settings.auth
    assert auth == Auth(
        issuer="https://id.example/realm",
        audience="https://gateway.example/mcp",
        keys="https://id.example/realm/keys",
        algorithms=("ES256",),
        leeway=60,
        agent_claim="azp",
        run_claim="job",
        agents={"client-7": "r"},
    )


@pytest.mark.parametrize(
    ("auth", "places"),
    [
        ("[x]", ["2:18 schema.type-mismatch"]),
        (
            "{issuer: 'https://id.example'}",
            ["2:18 schema.required-field", "2:18 schema.required-field"],
        ),
        ("{issuer: id, audience: gw, keys: k}", ["2:27 settings.bad-value"]),
        ("{issuer: 'https://i d', audience: gw, keys: k}", ["2:27 settings.bad-value"]),
        (f"{{{LEAST}, algorithm: RS256}}", ["2:78 settings.unknown-key"]),
        (f"{{{LEAST}, algorithms: [HS256]}}", ["2:91 settings.bad-value"]),
        (f"{{{LEAST}, algorithms: [none]}}", ["2:91 settings.bad-value"]),
        (f"{{{LEAST}, algorithms: [[x]]}}", ["2:91 schema.type-mismatch"]),
        (f"{{{LEAST}, leeway: 30}}", ["2:86 settings.bad-value"]),
        (f"{{{LEAST}, claims: {{agnt: azp}}}}", ["2:87 settings.unknown-key"]),
        (
            "{issuer: 'https://i', audience: gw, keys: 'http://id.example/keys'}",
            ["2:60 settings.bad-value"],
        ),
        (
            "{issuer: 'https://i', audience: gw, keys: 'ftp://id.example/keys'}",
            ["2:60 settings.bad-value"],
        ),
        ("{issuer: 'https://i', audience: 'https:// x', keys: k}", ["2:50 settings.bad-value"]),
    ],
)
def test_what_cannot_be_is_an_error_at_its_place(
    check: Callable[[str], list[str]], auth: str, places: list[str]
) -> None:
    assert check(f"{AGENTS}seriatim: {{auth: {auth}}}\n") == places


def test_keys_on_this_machine_may_come_over_plain_http(check: Callable[[str], list[str]]) -> None:
    auth = "{issuer: 'https://i', audience: gw, keys: 'http://127.0.0.1:8000/keys'}"
    assert check(f"{AGENTS}seriatim: {{auth: {auth}}}\n") == []
