"""A run as a tree, made of the rows of its audit log: agents, their turns, the calls of a turn.

A row says which agent called, and when; the calls of one turn bear the same moment. Which task of
an agent a call belongs to follows from the order in which calls ended: a delegation ends after
everything that was done for it, and before the next task of the same agent begins.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, final

from interceptors import AuditRecord

MODEL: Final = "model"
"""The executor whose agents hand tasks to others; see the field `via` of a row."""
GATEWAY: Final = "gateway"
"""The way in of harnesses, whoever started them."""

FINAL: Final = frozenset({"permission", "grant", "limit", "gate"})
"""Rules whose refusals name no way: whatever completes later has not recovered from them."""


@final
@dataclass(frozen=True, slots=True)
class Recovery:
    """How a skill that had been refused came to complete.

    Attributes:
        refusal: the last refusal before it, from which the agent learned.
        calls: the agent's calls from the first refusal to this one, which counts.
    """

    refusal: AuditRecord
    calls: int


@final
@dataclass(frozen=True, slots=True)
class Call:
    """A call, or a delegation with what was done for it.

    Attributes:
        recoveries: one when the call is a recovery, else none.
        turns: the turns of the agent to which a task was handed; none for a call of a skill.
    """

    record: AuditRecord
    recoveries: tuple[Recovery, ...]
    turns: "tuple[Turn, ...]"


@final
@dataclass(frozen=True, slots=True)
class Turn:
    """The calls that an agent issued together.

    Attributes:
        number: counted per agent and executor, from 1.
        time: when they were issued.
    """

    number: int
    time: str
    calls: tuple[Call, ...]


@final
@dataclass(frozen=True, slots=True)
class AgentTree:
    """What one agent did that nobody's task explains: a root's work, or a gateway's client's."""

    agent: str
    via: str
    turns: tuple[Turn, ...]


@final
@dataclass(frozen=True, slots=True)
class RunTree:
    """A run that has at least one row.

    Attributes:
        time: when its first call was issued.
        duration: seconds from there to the end of the call that ended last.
        calls: without delegations, as are the numbers below.
    """

    run: str
    topology: str
    time: str
    duration: float
    agents: tuple[AgentTree, ...]
    calls: int
    refusals: int
    recoveries: int
    failures: int


def run_tree(records: Sequence[AuditRecord]) -> RunTree:
    """Return the tree of the rows of one run, of which there is at least one.

    Raises:
        ValueError: when a row's time is none.
    """
    # Ids of events sort by the time at which they were made, which is when a call has ended.
    ended = sorted(records, key=lambda record: record.event_id)
    recoveries = _recoveries(ended)
    numbers = _numbers(ended)
    waiting: dict[tuple[str, str], list[Call]] = {}
    for record in ended:
        done_for_it: list[Call] = []
        if _is_delegation(record):
            # A child whose model calls nothing has a harness perhaps, which comes by the gateway.
            done_for_it = waiting.pop((record.skill, MODEL), []) or waiting.pop(
                (record.skill, GATEWAY), []
            )
        recovery = (recoveries[record.event_id],) if record.event_id in recoveries else ()
        call = Call(record, recovery, _turns(done_for_it, numbers))
        waiting.setdefault((record.agent, record.via), []).append(call)
    agents = [
        AgentTree(agent, via, _turns(calls, numbers)) for (agent, via), calls in waiting.items()
    ]
    first = min(records, key=lambda record: record.time)
    end = max(seconds_of(record.time) + record.duration for record in records)
    calls = [record for record in records if _is_call(record)]
    return RunTree(
        run=first.run,
        topology=first.topology,
        time=first.time,
        duration=end - seconds_of(first.time),
        agents=tuple(sorted(agents, key=lambda agent: agent.turns[0].time)),
        calls=len(calls),
        refusals=sum(record.outcome == "refused" for record in calls),
        recoveries=len(recoveries),
        failures=sum(record.outcome == "failed" for record in calls),
    )


def seconds_of(time: str) -> float:
    """Return the time of a row as seconds since the epoch; raises `ValueError` when it is none."""
    moment = datetime.strptime(time, "%Y-%m-%dT%H:%M:%S.%fZ")
    return moment.replace(tzinfo=UTC).timestamp()


def _is_delegation(record: AuditRecord) -> bool:
    return record.event_type == "agent.delegated"


def _is_call(record: AuditRecord) -> bool:
    return record.event_type == "skill.executed"


def _numbers(records: Iterable[AuditRecord]) -> Mapping[tuple[str, str, str], int]:
    """Return the number of each turn, which agent, executor and moment make up."""
    times: dict[tuple[str, str], set[str]] = {}
    for record in records:
        times.setdefault((record.agent, record.via), set()).add(record.time)
    return {
        (*actor, time): number
        for actor, moments in times.items()
        for number, time in enumerate(sorted(moments), start=1)
    }


def _turns(calls: Iterable[Call], numbers: Mapping[tuple[str, str, str], int]) -> tuple[Turn, ...]:
    turns: dict[tuple[str, int], list[Call]] = {}
    for call in calls:
        record = call.record
        number = numbers[record.agent, record.via, record.time]
        turns.setdefault((record.time, number), []).append(call)
    return tuple(
        Turn(number, time, tuple(together)) for (time, number), together in sorted(turns.items())
    )


def _recoveries(ended: Iterable[AuditRecord]) -> Mapping[str, Recovery]:
    """Return the recoveries under the event ids of the calls that completed.

    An agent learns from a refusal what it issues after it: a call of the same turn does not count.
    """
    issued: dict[str, list[str]] = {}
    refused: dict[tuple[str, str], list[AuditRecord]] = {}
    found: dict[str, Recovery] = {}
    calls = [record for record in ended if _is_call(record)]
    for record in sorted(calls, key=lambda call: call.time):
        issued.setdefault(record.agent, []).append(record.time)
    for record in calls:
        skill = (record.agent, record.skill)
        if record.outcome == "refused" and record.rule not in FINAL:
            refused.setdefault(skill, []).append(record)
        elif record.outcome == "completed":
            lessons = [refusal for refusal in refused.get(skill, ()) if refusal.time < record.time]
            if lessons:
                del refused[skill]
                times = issued[record.agent]
                calls_made = bisect_right(times, record.time) - bisect_right(times, lessons[0].time)
                found[record.event_id] = Recovery(lessons[-1], calls_made)
    return found
