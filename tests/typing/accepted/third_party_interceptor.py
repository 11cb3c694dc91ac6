"""A user's interceptor in ten lines, as a class and as a function."""

from interceptors import Handler, Interceptor, Outcome, Refused, ToolCall, Withheld, compose


class OfficeHours:
    """Refuses calls outside office hours."""

    def __init__(self, *, hour: int) -> None:
        self._open = 9 <= hour < 17

    async def __call__(self, call: ToolCall, proceed: Handler, /) -> Outcome:
        if not self._open:
            return Refused(Withheld("office-hours", "The office is closed. Try after 9."))
        return await proceed(call)


async def passing(call: ToolCall, proceed: Handler) -> Outcome:
    return await proceed(call)


def chain(terminal: Handler) -> Handler:
    interceptors: list[Interceptor] = [OfficeHours(hour=12), passing]
    return compose(interceptors, terminal)
