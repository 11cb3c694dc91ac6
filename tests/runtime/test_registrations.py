"""Registrations: tokens open what they were given out for, and show up nowhere."""

import logging
from types import MappingProxyType

import pytest
from opentelemetry.context import Context

from interceptors import (
    NO_RULES,
    AgentId,
    MemoryLedger,
    NotGranted,
    Outcome,
    Refused,
    RunId,
    Scope,
    ToolCall,
    Via,
)
from seriatim.runtime.dispatch import NO_LIMIT, Allowance, GovernedAgent
from seriatim.runtime.passage import Passage
from seriatim.runtime.registrations import Registration, Registrations
from seriatim.runtime.servers import RunningServers
from seriatim.runtime.session import ListedTool

pytestmark = pytest.mark.anyio


async def refuse(_call: ToolCall) -> Outcome:
    return Refused(NotGranted(()))


def registered(agent: str, *tools: str) -> Registration:
    governed = GovernedAgent(
        scope=Scope(RunId("r1"), AgentId(agent)),
        via=Via.GATEWAY,
        skills=MappingProxyType({}),
        rules=NO_RULES,
        ledger=MemoryLedger(),
        allowance=Allowance(NO_LIMIT),
        chain=refuse,
        not_granted=refuse,
        over_limit=refuse,
    )
    advertised = [
        ListedTool.model_validate({"name": tool, "inputSchema": {"type": "object", "title": tool}})
        for tool in tools
    ]
    nothing = Passage(RunningServers({}, frozenset()), (), frozenset())
    return Registration(governed, tuple(advertised), nothing, Context())


async def test_a_token_opens_the_registration_it_was_given_out_for() -> None:
    registrations = Registrations()
    first, second = registered("ada"), registered("bob")
    tokens = registrations.add(first), registrations.add(second)
    for token, registration in zip(tokens, (first, second), strict=True):
        access = await registrations.verify_token(token)
        assert access is not None
        assert registrations.behind(access) is registration


@pytest.mark.parametrize(
    "change", [str.lower, str.swapcase, lambda token: token[:-1], lambda _: ""]
)
async def test_a_wrong_token_opens_nothing(change) -> None:
    registrations = Registrations()
    token = registrations.add(registered("ada"))
    assert await registrations.verify_token(change(token)) is None


async def test_text_that_is_no_text_opens_nothing() -> None:
    assert await Registrations().verify_token("\ud800\x00") is None


async def test_two_registrations_of_one_agent_have_different_tokens_and_principals() -> None:
    registrations = Registrations()
    tokens = registrations.add(registered("ada")), registrations.add(registered("ada"))
    accesses = [await registrations.verify_token(token) for token in tokens]
    assert tokens[0] != tokens[1]
    assert len({access.client_id for access in accesses if access}) == 2


async def test_a_token_holds_256_random_bits() -> None:
    registrations = Registrations()
    tokens = {registrations.add(registered("ada")) for _ in range(50)}
    assert len(tokens) == 50
    assert {len(token) for token in tokens} == {43}


async def test_a_token_is_in_no_repr_and_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    registrations = Registrations()
    registration = registered("ada")
    token = registrations.add(registration)
    access = await registrations.verify_token(token)
    shown = f"{registrations!r} {vars(registrations)!r} {registration!r} {access!r} {caplog.text}"
    assert token not in shown


async def test_the_input_schema_of_a_tool_is_found_whoever_holds_it() -> None:
    registrations = Registrations()
    registrations.add(registered("ada", "a"))
    registrations.add(registered("bob", "b"))
    assert registrations.input_schema("b") == {"type": "object", "title": "b"}
    assert registrations.input_schema("c") is None
