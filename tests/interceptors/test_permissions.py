import anyio
import pytest

from interceptors import (
    Allowed,
    Denied,
    GateUnavailable,
    NoTool,
    PermissionDenied,
    PermissionInterceptor,
    Permit,
    Refused,
    SkillId,
    Tier,
    TierPolicy,
    ToolCall,
    ToolRef,
    Verdict,
    judge,
    text_of,
)
from tests.support.calls import COMPLETED, NEVER, Neighbour, make_call

pytestmark = pytest.mark.anyio

TOOL = ToolRef("bar", "drop")
UNAVAILABLE = Refused(GateUnavailable("policy engine unavailable"))


class Raising:
    async def decide(self, _call: ToolCall, /) -> Verdict:
        raise ConnectionError("no route to the engine")


class Hanging:
    async def decide(self, _call: ToolCall, /) -> Verdict:
        await anyio.sleep_forever()
        raise AssertionError


class Speechless:
    async def decide(self, _call: ToolCall, /) -> Verdict:
        return None  # type: ignore[return-value]  # what an engine written without types may do


class Fixed:
    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict

    async def decide(self, _call: ToolCall, /) -> Verdict:
        return self.verdict


def permit(tier: Tier, *scopes: str, reads_only: bool = False) -> Permit:
    return Permit(tier, "server bar", frozenset(scopes), reads_only)


@pytest.mark.parametrize(
    ("permit", "scopes", "verdict"),
    [
        (permit(Tier.OPEN, "a"), set(), Allowed()),
        (permit(Tier.CAUTIOUS), set(), Allowed()),
        (permit(Tier.CAUTIOUS, "a"), {"a", "b"}, Allowed()),
        (permit(Tier.CAUTIOUS, "a"), set(), Denied("it lacks the scope a")),
        (permit(Tier.CAUTIOUS, "b", "a", "c"), {"c"}, Denied("it lacks the scopes a, b")),
        (permit(Tier.READONLY, reads_only=True), set(), Allowed()),
        (permit(Tier.READONLY), {"a"}, Denied("server bar is readonly")),
        (permit(Tier.READONLY, "a", reads_only=True), set(), Denied("it lacks the scope a")),
        (permit(Tier.STRICT), {"mcp:call:bar:drop"}, Allowed()),
        (permit(Tier.STRICT), {"mcp:call:bar:other"}, Denied("server bar is strict")),
        (permit(Tier.STRICT, "a", reads_only=True), {"a"}, Denied("server bar is strict")),
    ],
)
def test_tiers(permit: Permit, scopes: set[str], verdict: Verdict) -> None:
    assert judge(permit, TOOL, frozenset(scopes)) == verdict


@pytest.mark.parametrize("call", [make_call("unknown"), make_call("x", tool=NoTool())])
async def test_a_skill_that_the_policy_does_not_know_is_denied(call: ToolCall) -> None:
    policy = TierPolicy({SkillId("x"): permit(Tier.OPEN)}, frozenset())
    assert await policy.decide(call) == Denied("nothing is known of it")


async def test_a_denial_names_what_denies_and_goes_no_further() -> None:
    policy = TierPolicy({SkillId("x"): permit(Tier.STRICT)}, frozenset())
    outcome = await PermissionInterceptor(policy)(make_call("x"), NEVER)
    assert outcome == Refused(PermissionDenied("server bar is strict"))
    assert text_of("x", outcome) == (
        "x is not permitted for this agent (server bar is strict). Do not retry; report it."
    )


async def test_what_is_allowed_goes_on() -> None:
    proceed = Neighbour()
    assert await PermissionInterceptor(Fixed(Allowed()))(make_call(), proceed) is COMPLETED
    assert len(proceed.calls) == 1


@pytest.mark.parametrize("policy", [Raising(), Hanging(), Speechless()])
async def test_a_policy_that_gives_no_verdict_refuses(
    policy: Raising | Hanging | Speechless,
) -> None:
    with anyio.fail_after(5):
        outcome = await PermissionInterceptor(policy, limit=0.01)(make_call(), NEVER)
    assert outcome == UNAVAILABLE


@pytest.mark.parametrize("policy", [Raising(), Hanging(), Speechless()])
async def test_fail_open_lets_pass_what_the_policy_could_not_decide(
    policy: Raising | Hanging | Speechless,
) -> None:
    interceptor = PermissionInterceptor(policy, limit=0.01, fail_open=True)
    with anyio.fail_after(5):
        assert await interceptor(make_call(), Neighbour()) is COMPLETED


async def test_fail_open_does_not_soften_a_denial() -> None:
    interceptor = PermissionInterceptor(Fixed(Denied("no")), fail_open=True)
    assert await interceptor(make_call(), NEVER) == Refused(PermissionDenied("no"))


async def test_what_lies_behind_the_gate_is_outside_the_policys_limit_and_its_faults() -> None:
    async def slow(_call: ToolCall, /) -> Refused:
        await anyio.sleep(0.05)
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await PermissionInterceptor(Fixed(Allowed()), limit=0.01)(make_call(), slow)


async def test_a_cancelled_decision_is_no_verdict() -> None:
    with anyio.move_on_after(0.01) as scope:
        await PermissionInterceptor(Hanging())(make_call(), NEVER)
    assert scope.cancelled_caught
