"""The wrapper round a user's interceptor: whatever it does, the call has an outcome."""

from copy import deepcopy
from dataclasses import replace
from typing import Final

import anyio

from interceptors.calls import BrokenArguments, JsonObject, ToolCall
from interceptors.chain import Handler, Interceptor
from interceptors.outcomes import (
    Completed,
    Failed,
    GateUnavailable,
    Outcome,
    Raised,
    Refused,
    Withheld,
)
from interceptors.redaction import Redactor
from interceptors.texts import clause, text_of


class IsolatedInterceptor:
    """Runs a user's interceptor so that it can neither break the gate nor go round it.

    When it raises, or takes longer than `limit` for itself, the call is refused if it had not
    proceeded, and failed if it had. It proceeds at most once: one call is one audit row. It may
    change the arguments and nothing else of a call, and can turn neither a refusal into a result
    nor a call that has gone on into a refusal. A refusal of its own is a `Withheld`, and bears its
    name.

    Args:
        name: how the interceptor is named in rows and texts.
        limit: seconds; the time of what it proceeds to is not counted.
        redactor: blots secrets out of what its exceptions say.
    """

    def __init__(
        self, name: str, interceptor: Interceptor, limit: float, redactor: Redactor
    ) -> None:
        self._name: Final = name
        self._interceptor: Final = interceptor
        self._limit: Final = limit
        self._redactor: Final = redactor

    async def __call__(self, call: ToolCall, proceed: Handler, /) -> Outcome:
        passage = _Passage(self._name, call, proceed, self._limit)
        try:
            with passage.own_time:
                # A copy of the arguments: what it changes in place is not what was issued.
                own = replace(call, arguments=_copied(call.arguments))
                outcome: object = await self._interceptor(own, passage)
                if passage.refusal:
                    return passage.refusal
                if not passage.overdue:
                    return passage.checked(outcome)
            problem = f"it took longer than {self._limit:g} seconds"
        except (anyio.get_cancelled_exc_class(), GeneratorExit):
            raise
        except _OverdueError:
            problem = f"it took longer than {self._limit:g} seconds"
        except BaseException as error:  # noqa: BLE001  a user's may raise anything, and end no gateway
            problem = f"it raised {clause(error, self._redactor.text)}"
        finally:
            passage.closed = True
        if passage.refusal:
            return passage.refusal
        if passage.proceeded:
            return Failed(Raised(self._name, problem))
        return Refused(GateUnavailable(f"interceptor {self._name} failed: {problem}"))


def _copied(arguments: JsonObject | BrokenArguments) -> JsonObject | BrokenArguments:
    return arguments if isinstance(arguments, BrokenArguments) else deepcopy(dict(arguments))


class _OverdueError(Exception):
    """An interceptor would go on after its time, which it had shielded itself against."""


class _Passage:
    """The `proceed` that one user's interceptor is given for one call."""

    def __init__(self, name: str, call: ToolCall, proceed: Handler, limit: float) -> None:
        self._name: Final = name
        self._call: Final = call
        self._proceed: Final = proceed
        self.own_time: Final = anyio.move_on_after(limit)
        self.proceeded = False
        self.closed = False
        self.refusal: Refused | None = None
        self._under_way = False

    @property
    def overdue(self) -> bool:
        """Whether the interceptor's own time is over, even if it has held off its end."""
        return anyio.current_time() > self.own_time.deadline

    async def __call__(self, call: ToolCall, /) -> Outcome:
        if self.proceeded or self.closed:
            raise RuntimeError("an interceptor may proceed once, and before it returns")
        if replace(call, arguments=self._call.arguments) != self._call:
            raise ValueError("an interceptor may change the arguments of a call, and nothing else")
        if self.overdue:
            raise _OverdueError
        self.proceeded = self._under_way = True
        remaining = self.own_time.deadline - anyio.current_time()
        self.own_time.deadline = float("inf")
        try:
            outcome = await self._proceed(call)
        finally:
            self._under_way = False
            self.own_time.deadline = anyio.current_time() + remaining
        if isinstance(outcome, Refused):
            self.refusal = outcome
        return outcome

    def checked(self, outcome: object) -> Outcome:
        """Return what the interceptor returned when it can stand as the call's outcome."""
        if self._under_way:
            raise RuntimeError("it returned before what it proceeded to had ended")
        match outcome:
            case Refused() if self.proceeded:
                raise ValueError("it refused a call that had gone on")
            case Refused(Withheld(_, reason)):
                return Refused(Withheld(self._name, str(reason)))
            case Refused():
                raise ValueError("it refused in the name of the gate, and not with `Withheld`")
            case Completed() | Failed():
                text_of(self._call.skill, outcome)  # raises when it holds what cannot be shown
                return outcome
            case _:
                raise TypeError(f"it returned {type(outcome).__name__}, which is no outcome")
