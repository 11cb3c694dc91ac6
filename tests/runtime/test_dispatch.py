"""The turn: what dispatch reads before it judges, and notes after. Servers are in memory here."""

import asyncio
import random
from collections.abc import Collection, Mapping, Sequence
from typing import cast

import anyio
import pytest
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, rule
from hypothesis.strategies import data, lists, sampled_from

from interceptors import (
    AgentId,
    Attempt,
    CallId,
    Cancelled,
    Completed,
    DecisionId,
    Failed,
    GateUnavailable,
    LimitReached,
    MemoryLedger,
    NotGranted,
    Outcome,
    PrerequisiteInterceptor,
    Refused,
    Rules,
    RunId,
    Scope,
    SkillId,
    SkillState,
    ToolCall,
    ToolError,
    ToolRef,
    ToolResult,
    Via,
    compose,
    refusal_text,
)
from seriatim.runtime.dispatch import (
    NO_LIMIT,
    Allowance,
    GovernedAgent,
    Request,
    governed_mcp_call,
)
from seriatim.topology.models import Skill

pytestmark = pytest.mark.anyio

RULES = Rules(
    {
        SkillId("b"): (SkillId("a"),),
        SkillId("c"): (SkillId("b"),),
        SkillId("e"): (SkillId("a"), SkillId("d")),
    }
)
SKILLS = "abcde"


class Tools:
    """What stands at the end of the chain: completes, unless told otherwise, and keeps count."""

    def __init__(self) -> None:
        self.fails: set[str] = set()
        self.reached: list[str] = []
        self.delays: Mapping[str, float] = {}

    async def __call__(self, call: ToolCall, /) -> Outcome:
        self.reached.append(call.skill)
        await anyio.sleep(self.delays.get(call.skill, 0))
        if call.skill in self.fails:
            return Failed(ToolError(ToolResult()))
        return Completed(ToolResult())


def governed(
    tools: Tools,
    ledger: MemoryLedger,
    *,
    run: str = "r",
    agent: str = "x",
    rules: Rules = RULES,
    limit: int = NO_LIMIT,
) -> GovernedAgent:
    async def not_granted(_call: ToolCall, /) -> Outcome:
        return Refused(NotGranted(tuple(SKILLS)))

    async def over_limit(_call: ToolCall, /) -> Outcome:
        return Refused(LimitReached(limit))

    skills = {
        SkillId(name): Skill(
            id=SkillId(name),
            description="",
            tool=ToolRef("server", name),
            fixed={"by": "workspace"} if name == "d" else {},
            required_scopes=frozenset(),
            timeout=1,
            redact=frozenset(),
        )
        for name in SKILLS
    }
    return GovernedAgent(
        scope=Scope(RunId(run), AgentId(agent)),
        via=Via.MODEL,
        skills=skills,
        rules=rules,
        ledger=ledger,
        allowance=Allowance(limit),
        chain=compose([PrerequisiteInterceptor(rules)], tools),
        not_granted=not_granted,
        over_limit=over_limit,
    )


def turn(*names: str) -> list[Request]:
    return [Request(CallId(str(i)), name, {}) for i, name in enumerate(names)]


def told(names: Sequence[str], outcomes: Sequence[Outcome]) -> list[str]:
    return [
        refusal_text(name, outcome.refusal) if isinstance(outcome, Refused) else "ran"
        for name, outcome in zip(names, outcomes, strict=True)
    ]


async def test_a_prerequisite_in_the_same_turn_does_not_satisfy_whatever_the_timing() -> None:
    for seed in range(200):
        tools = Tools()
        delays = random.Random(seed)
        tools.delays = {name: delays.choice([0, 0, 0.001]) for name in SKILLS}
        agent = governed(tools, MemoryLedger())
        names = ["a", "b"] if seed % 2 else ["b", "a"]
        first = dict(zip(names, await governed_mcp_call(agent, turn(*names)), strict=True))
        assert isinstance(first["a"], Completed)
        assert told(["b"], [first["b"]]) == [
            "b requires a, which was called but whose result had not been returned when b was "
            "called. Read the result of a, then retry."
        ]
        assert [type(outcome) for outcome in await governed_mcp_call(agent, turn("b"))] == [
            Completed
        ]


async def test_a_refused_skill_of_the_same_turn_counts_as_called_and_not_returned() -> None:
    agent = governed(Tools(), MemoryLedger())
    names = ["c", "b"]
    assert told(names, await governed_mcp_call(agent, turn(*names))) == [
        "c requires b, which was called but whose result had not been returned when c was called. "
        "Read the result of b, then retry.",
        "b requires a, which has not been called in this session. Call a first, then retry.",
    ]


async def test_a_refused_attempt_leaves_the_skill_not_called() -> None:
    agent = governed(Tools(), MemoryLedger())
    await governed_mcp_call(agent, turn("b"))
    assert told(["c"], await governed_mcp_call(agent, turn("c"))) == [
        "c requires b, which has not been called in this session. Call a, then b first, then retry."
    ]


async def test_a_prerequisite_that_fails_is_named_as_called_without_success() -> None:
    tools = Tools()
    tools.fails = {"a"}
    agent = governed(tools, MemoryLedger())
    await governed_mcp_call(agent, turn("a"))
    assert told(["b"], await governed_mcp_call(agent, turn("b"))) == [
        "b requires a, which was called but did not succeed in this session. "
        "Call a again, then retry."
    ]


async def test_a_success_is_not_undone_by_a_later_failure() -> None:
    tools = Tools()
    agent = governed(tools, MemoryLedger())
    await governed_mcp_call(agent, turn("a"))
    tools.fails = {"a"}
    await governed_mcp_call(agent, turn("a"))
    assert told(["b"], await governed_mcp_call(agent, turn("b"))) == ["ran"]


async def test_a_prerequisite_in_flight_in_another_turn_does_not_count() -> None:
    tools = Tools()
    agent = governed(tools, MemoryLedger())
    gate = anyio.Event()
    chain = agent.chain

    async def waiting(call: ToolCall, /) -> Outcome:
        if call.skill == "a":
            await gate.wait()
        return await chain(call)

    slow = GovernedAgent(
        agent.scope,
        agent.via,
        agent.skills,
        agent.rules,
        agent.ledger,
        agent.allowance,
        waiting,
        agent.not_granted,
        agent.over_limit,
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(governed_mcp_call, slow, turn("a"))
        await anyio.wait_all_tasks_blocked()
        [text] = told(["b"], await governed_mcp_call(slow, turn("b")))
        assert text.endswith("Read the result of a, then retry.")
        gate.set()
    assert told(["b"], await governed_mcp_call(slow, turn("b"))) == ["ran"]


async def test_a_cancelled_prerequisite_does_not_satisfy_and_is_not_left_running() -> None:
    tools = Tools()
    tools.delays = {"a": 60}
    ledger = MemoryLedger()
    agent = governed(tools, ledger)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(governed_mcp_call, agent, turn("a"))
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert await ledger.standing(agent.scope, [SkillId("a")]) == {"a": SkillState.UNSUCCESSFUL}
    assert told(["b"], await governed_mcp_call(agent, turn("b"))) == [
        "b requires a, which was called but did not succeed in this session. "
        "Call a again, then retry."
    ]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # on trio nothing can raise it by itself
async def test_a_call_that_is_cancelled_by_itself_has_an_outcome_all_the_same() -> None:
    async def terminal(call: ToolCall, /) -> Outcome:
        if call.skill == "a":
            raise asyncio.CancelledError
        return Completed(ToolResult())

    agent = governed(cast(Tools, terminal), MemoryLedger())
    outcomes = await governed_mcp_call(agent, turn("a", "d"))
    assert outcomes == [Failed(Cancelled()), Completed(ToolResult())]


async def test_a_result_that_comes_after_the_cancellation_does_not_satisfy() -> None:
    async def terminal(_call: ToolCall, /) -> Outcome:
        tasks.cancel_scope.cancel()
        return Completed(ToolResult())

    ledger = MemoryLedger()
    agent = governed(cast(Tools, terminal), ledger)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(governed_mcp_call, agent, turn("a"))
    assert await ledger.standing(agent.scope, [SkillId("a")]) == {"a": SkillState.UNSUCCESSFUL}


async def test_fixed_arguments_win_over_the_agents() -> None:
    seen: list[object] = []

    async def terminal(call: ToolCall, /) -> Outcome:
        seen.append(call.arguments)
        return Completed(ToolResult())

    agent = governed(cast(Tools, terminal), MemoryLedger())
    await governed_mcp_call(agent, [Request(CallId("1"), "d", {"by": "agent", "n": 1})])
    assert seen == [{"by": "workspace", "n": 1}]


async def test_calls_beyond_the_limit_are_refused_in_the_order_of_the_turn() -> None:
    agent = governed(Tools(), MemoryLedger(), limit=2)
    names = ["a", "nonsense", "a", "d"]
    outcomes = await governed_mcp_call(agent, turn(*names))
    assert told(names, outcomes) == [
        "ran",
        "nonsense is not one of your tools. Your tools are a, b, c, d, e.",
        "a was not run: this run has used its 2 calls. Finish without tools.",
        "d was not run: this run has used its 2 calls. Finish without tools.",
    ]
    assert agent.allowance.exceeded


class BrokenLedger(MemoryLedger):
    """A ledger whose store is down for some of its methods."""

    def __init__(self, *broken: str) -> None:
        super().__init__()
        self.broken = broken

    async def standing(
        self, scope: Scope, skills: Collection[SkillId]
    ) -> Mapping[SkillId, SkillState]:
        self._check("standing")
        return await super().standing(scope, skills)

    async def begin(self, scope: Scope, skill: SkillId, decision: DecisionId) -> None:
        self._check("begin")
        await super().begin(scope, skill, decision)

    async def finish(
        self, scope: Scope, skill: SkillId, decision: DecisionId, attempt: Attempt
    ) -> None:
        self._check("finish")
        await super().finish(scope, skill, decision, attempt)

    def _check(self, method: str) -> None:
        if method in self.broken:
            raise ConnectionError("password=hunter2")


async def test_a_ledger_that_cannot_answer_refuses_what_depends_on_it() -> None:
    tools = Tools()
    agent = governed(tools, BrokenLedger("standing", "begin"))
    assert await governed_mcp_call(agent, turn("a")) == [
        Refused(GateUnavailable("ledger unavailable"))
    ]
    assert await governed_mcp_call(agent, turn("b")) == [
        Refused(GateUnavailable("ledger unavailable"))
    ]
    assert tools.reached == []


async def test_a_success_that_could_not_be_noted_unlocks_nothing() -> None:
    agent = governed(Tools(), BrokenLedger("finish"))
    assert [type(outcome) for outcome in await governed_mcp_call(agent, turn("a"))] == [Completed]
    assert [type(outcome) for outcome in await governed_mcp_call(agent, turn("b"))] == [Refused]


class SlowLedger(MemoryLedger):
    """A ledger whose store takes its time over the first answer."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.answer = anyio.Event(), anyio.Event()

    async def begin(self, scope: Scope, skill: SkillId, decision: DecisionId) -> None:
        await super().begin(scope, skill, decision)
        self.asked.set()
        await self.answer.wait()


async def test_a_call_that_is_cancelled_while_the_ledger_answers_is_not_left_running() -> None:
    ledger = SlowLedger()
    agent = governed(Tools(), ledger)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(governed_mcp_call, agent, turn("a"))
        await ledger.asked.wait()
        tasks.cancel_scope.cancel()
        ledger.answer.set()
    assert await ledger.standing(agent.scope, [SkillId("a")]) == {"a": SkillState.UNSUCCESSFUL}


async def test_an_agent_without_rules_never_asks_the_ledger() -> None:
    agent = governed(Tools(), BrokenLedger("standing", "begin", "finish"), rules=Rules({}))
    assert told(SKILLS, await governed_mcp_call(agent, turn(*SKILLS))) == ["ran"] * 5


class Gate(RuleBasedStateMachine):
    """Any interleaving of turns, agents, runs, successes and failures, against ten lines."""

    scopes = Bundle("scopes")

    def __init__(self) -> None:
        super().__init__()
        self.tools = Tools()
        self.ledger = MemoryLedger()
        self.seen: set[tuple[str, str, str]] = set()

    @rule(
        run=sampled_from(["r1", "r2"]),
        agent=sampled_from(["x", "y"]),
        names=lists(sampled_from(SKILLS), min_size=1, max_size=4),
        choices=data(),
    )
    def take_a_turn(self, run: str, agent: str, names: list[str], choices: object) -> None:
        self.tools.fails = set(cast("object", choices).draw(lists(sampled_from(SKILLS))))  # type: ignore[attr-defined]  # hypothesis' data object has no public type
        self.tools.reached = []
        allowed = [
            name
            for name in names
            if all((run, agent, step) in self.seen for step in RULES.requires.get(name, ()))  # type: ignore[call-overload]  # plain strings in the model
        ]
        actor = governed(self.tools, self.ledger, run=run, agent=agent)
        outcomes = anyio.run(governed_mcp_call, actor, turn(*names))
        assert [not isinstance(outcome, Refused) for outcome in outcomes] == [
            name in allowed for name in names
        ]
        assert sorted(self.tools.reached) == sorted(allowed)
        self.seen |= {(run, agent, name) for name in allowed if name not in self.tools.fails}


Gate.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
test_the_gate_agrees_with_a_model_of_ten_lines = pytest.mark.timeout(120)(Gate.TestCase)
