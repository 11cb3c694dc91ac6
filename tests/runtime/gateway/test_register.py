"""The register: tokens open what they were given out for, for as long as they may."""

import gc
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from interceptors import AgentId, Attempt, DecisionId, MemoryAuditSink, RunId, Scope, SkillId
from seriatim.runtime.gateway.door import Door
from seriatim.runtime.gateway.register import (
    FOREVER,
    REMEMBERED,
    Entry,
    Obstacle,
    Past,
    Register,
    RegistrationError,
    Unknown,
    open_register,
)
from seriatim.runtime.run import Run
from seriatim.topology.models import GatewayLimits
from tests.support.gateways import running, write_workspace

pytestmark = pytest.mark.anyio

R1, R2 = RunId("r1"), RunId("r2")
ADA, BOB = AgentId("ada"), AgentId("bob")


class Clock:
    """A clock that stands still unless it is set."""

    def __init__(self) -> None:
        self.time = 1_000_000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def anyio_backend() -> str:
    """As the front that it is part of."""
    return "asyncio"


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[Run]:
    path = write_workspace(tmp_path)
    path.write_text(path.read_text().replace("- sh\n", "- no-such-command\n"))
    async with running(path, MemoryAuditSink()) as run:
        yield run


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def register(run: Run, clock: Clock) -> AsyncIterator[Register]:
    async with open_register(run, clock) as register:
        yield register


def with_limits(run: Run, limits: GatewayLimits) -> Run:
    settings = replace(run.workspace.settings, gateway=limits)
    return replace(run, workspace=replace(run.workspace, settings=settings))


async def test_a_token_opens_the_registration_it_was_given_out_for(register: Register) -> None:
    for agent in (ADA, BOB):
        entry, token = await register.issue(R1, agent, FOREVER)
        assert register.find(token) is entry
        assert entry.scope == Scope(R1, agent)


@pytest.mark.parametrize(
    "change", [str.lower, str.swapcase, lambda token: token[:-1], lambda _: "", lambda _: "\ud800"]
)
async def test_a_wrong_token_opens_nothing(register: Register, change) -> None:
    _, token = await register.issue(R1, ADA, FOREVER)
    assert register.find(change(token)) == Unknown()


async def test_a_token_holds_256_random_bits_and_is_no_others(register: Register) -> None:
    tokens = set()
    for number in range(20):
        _, token = await register.issue(RunId(f"r{number}"), ADA, FOREVER)
        tokens.add(token)
    assert len(tokens) == 20
    assert {len(token) for token in tokens} == {43}


async def test_a_token_is_in_no_repr_and_in_no_log(
    register: Register, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    entry, token = await register.issue(R1, ADA, FOREVER)
    await register.end(entry.registration.id)
    shown = f"{vars(register)!r} {vars(entry)!r} {entry.registration!r} {caplog.text}"
    assert token not in shown


async def test_an_agent_has_one_registration_in_a_run(register: Register) -> None:
    await register.issue(R1, ADA, FOREVER)
    await register.issue(R2, ADA, FOREVER)
    with pytest.raises(RegistrationError) as obstacle:
        await register.issue(R1, ADA, FOREVER)
    assert obstacle.value.obstacle is Obstacle.TAKEN


async def test_an_agent_that_the_topology_lacks_is_not_registered(register: Register) -> None:
    with pytest.raises(RegistrationError) as obstacle:
        await register.issue(R1, AgentId("eve"), FOREVER)
    assert obstacle.value.obstacle is Obstacle.UNKNOWN_AGENT


async def test_there_are_no_more_registrations_than_there_may_be(run: Run, clock: Clock) -> None:
    limited = with_limits(run, GatewayLimits(registrations=2))
    async with open_register(limited, clock) as register:
        first, _ = await register.issue(R1, ADA, FOREVER)
        await register.issue(R1, BOB, 60)
        with pytest.raises(RegistrationError) as obstacle:
            await register.issue(R2, ADA, FOREVER)
        assert obstacle.value.obstacle is Obstacle.FULL
        await register.end(first.registration.id)
        await register.issue(R2, ADA, FOREVER)


async def test_a_token_expires_at_its_time_and_its_holder_is_told(
    register: Register, clock: Clock
) -> None:
    entry, token = await register.issue(R1, ADA, 60)
    clock.time += 59.9
    assert register.find(token) is entry
    clock.time += 0.1
    assert register.find(token) == Past("the token has expired; ask for a new one")
    assert register.entries() == ()
    with anyio.fail_after(5):
        await entry.closed.wait()


async def test_what_nobody_asks_for_expires_too(register: Register, clock: Clock) -> None:
    entry, _ = await register.issue(R1, ADA, 60)
    clock.time += 60
    register.sweep()
    with anyio.fail_after(5):
        await entry.closed.wait()


async def test_a_token_whose_registration_was_ended_opens_nothing_and_says_why(
    register: Register,
) -> None:
    entry, token = await register.issue(R1, ADA, FOREVER)
    other, others = await register.issue(R1, BOB, FOREVER)
    assert await register.end(entry.registration.id)
    assert register.find(token) == Past("the registration of this token has been ended")
    assert not await register.end(entry.registration.id)
    assert register.find(others) is other


async def test_the_fates_of_old_tokens_are_forgotten_in_the_end(register: Register) -> None:
    _, oldest = await register.issue(R1, ADA, FOREVER)
    for _ in range(REMEMBERED + 1):
        [entry] = register.entries()
        await register.end(entry.registration.id)
        await register.issue(R1, ADA, FOREVER)
    assert register.find(oldest) == Unknown()


async def test_the_end_of_a_registration_ends_its_standing_and_no_other(
    register: Register, run: Run
) -> None:
    skill, decision = SkillId("list-conventions"), DecisionId("d")
    entries = [(await register.issue(R1, agent, FOREVER))[0] for agent in (ADA, BOB)]
    for entry in entries:
        await run.engines.ledger.begin(entry.scope, skill, decision)
        await run.engines.ledger.finish(entry.scope, skill, decision, Attempt.COMPLETED)
    await register.end(entries[0].registration.id)
    assert not await run.engines.ledger.standing(entries[0].scope, [skill])
    assert await run.engines.ledger.standing(entries[1].scope, [skill])


async def test_each_run_has_an_allowance_of_its_own_and_its_agents_share_it(
    register: Register,
) -> None:
    one, two, three = [
        (await register.issue(run, agent, FOREVER))[0].registration.agent
        for run, agent in ((R1, ADA), (R2, ADA), (R2, BOB))
    ]
    assert one.allowance is not two.allowance
    assert two.allowance is three.allowance


async def test_who_proves_to_be_an_agent_again_has_the_same_registration_for_longer(
    register: Register, clock: Clock
) -> None:
    first = await register.claim(R1, ADA, clock.time + 60)
    clock.time += 50
    assert await register.claim(R1, ADA, clock.time + 60) is first
    clock.time += 50
    assert await register.claim(R1, ADA, clock.time + 10) is first
    clock.time += 10
    assert await register.claim(R1, ADA, clock.time + 60) is not first


async def test_who_proves_to_be_an_agent_does_not_enter_by_anothers_token(
    register: Register, clock: Clock
) -> None:
    await register.issue(R1, ADA, FOREVER)
    with pytest.raises(RegistrationError) as obstacle:
        await register.claim(R1, ADA, clock.time + 60)
    assert obstacle.value.obstacle is Obstacle.TAKEN


async def test_abandoned_registrations_leave_nothing_behind(
    register: Register, run: Run, clock: Clock
) -> None:
    async def abandon(number: int) -> None:
        entries: list[Entry] = []
        for each in range(number):
            entry, _ = await register.issue(RunId(f"run-{each}"), BOB, 60)
            await run.engines.ledger.begin(
                entry.scope, SkillId("list-conventions"), DecisionId("d")
            )
            entries.append(entry)
        clock.time += 60
        register.sweep()
        for entry in entries:
            await entry.closed.wait()

    def living() -> int:
        gc.collect()
        return len(gc.get_objects())

    await abandon(REMEMBERED)  # fills what is bounded, the memory of old tokens for one
    before = living()
    for _ in range(5):
        await abandon(200)
    assert abs(living() - before) < 200
    assert not any(isinstance(each, Door) for each in gc.get_objects())
