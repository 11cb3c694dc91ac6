"""The gate: a guarded skill is refused until its prerequisites have been seen to succeed."""

from typing import Final, assert_never

from interceptors.calls import Standing, StandingUnavailable, ToolCall
from interceptors.chain import Handler
from interceptors.outcomes import GateUnavailable, Outcome, Refused
from interceptors.rules import Rules


class PrerequisiteInterceptor:
    """Judges a call by the standing that it was issued in; asks nobody, and remembers nothing.

    Comes before permission: an ordering refusal is no question of policy, and an `allow` for a call
    that is about to be refused would mislead.

    Args:
        fail_open: let calls pass whose standing the ledger could not tell.
    """

    def __init__(self, rules: Rules, *, fail_open: bool = False) -> None:
        self._rules: Final = rules
        self._watched: Final = rules.prerequisites | rules.requires.keys()
        self._fail_open: Final = fail_open

    async def __call__(self, call: ToolCall, proceed: Handler, /) -> Outcome:
        match call.standing:
            case Standing() as standing:
                for unmet in self._rules.unmet(call.skill, standing):
                    return Refused(unmet)
            case StandingUnavailable(reason):
                # A prerequisite is refused too: its success could not be remembered.
                if call.skill in self._watched and not self._fail_open:
                    return Refused(GateUnavailable(reason))
            case _:
                assert_never(call.standing)
        return await proceed(call)
