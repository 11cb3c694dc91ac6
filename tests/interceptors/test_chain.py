import doctest

import pytest

from interceptors import Handler, Outcome, ToolCall, chain, compose
from tests.support.calls import COMPLETED, NEVER, Neighbour, make_call

pytestmark = pytest.mark.anyio


class Noting:
    def __init__(self, name: str, notes: list[str]) -> None:
        self.name, self.notes = name, notes

    async def __call__(self, call: ToolCall, proceed: Handler, /) -> Outcome:
        self.notes.append(f"{self.name} in")
        outcome = await proceed(call)
        self.notes.append(f"{self.name} out")
        return outcome


def test_the_documented_example_is_true() -> None:
    result = doctest.testmod(chain)
    assert (result.attempted, result.failed) == (4, 0)


async def test_the_first_interceptor_is_outermost() -> None:
    notes: list[str] = []
    handler = compose([Noting(name, notes) for name in "abc"], Neighbour())
    assert await handler(make_call()) is COMPLETED
    assert notes == ["a in", "b in", "c in", "c out", "b out", "a out"]


async def test_no_interceptors_leave_the_terminal_as_it_is() -> None:
    terminal = Neighbour()
    assert compose([], terminal) is terminal


async def test_an_interceptor_may_answer_without_proceeding() -> None:
    async def answering(_call: ToolCall, _proceed: Handler, /) -> Outcome:
        return COMPLETED

    assert await compose([answering], NEVER)(make_call()) is COMPLETED


async def test_a_chain_does_not_follow_later_changes_of_the_list_it_was_made_from() -> None:
    notes: list[str] = []
    interceptors = [Noting("a", notes)]
    handler = compose(interceptors, Neighbour())
    interceptors.append(Noting("b", notes))
    await handler(make_call())
    assert notes == ["a in", "a out"]


async def test_an_interceptor_may_change_what_the_next_one_receives() -> None:
    async def changing(_call: ToolCall, proceed: Handler, /) -> Outcome:
        return await proceed(make_call("other"))

    terminal = Neighbour()
    await compose([changing], terminal)(make_call())
    assert [call.skill for call in terminal.calls] == ["other"]
