"""The chain: handlers, interceptors, and how a row of interceptors becomes one handler."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias

from interceptors.calls import ToolCall
from interceptors.outcomes import Outcome

Handler: TypeAlias = Callable[[ToolCall], Awaitable[Outcome]]
"""Takes a call to its outcome."""


class Interceptor(Protocol):
    """Stands round a handler: looks at the call, and may proceed, answer itself, or do both.

    An interceptor keeps nothing about one call in itself: one object serves many calls at once.
    It returns an outcome, and lets cancellation through.
    """

    def __call__(self, call: ToolCall, proceed: Handler, /) -> Awaitable[Outcome]: ...


def compose(interceptors: Sequence[Interceptor], terminal: Handler) -> Handler:
    """Return one handler that runs `interceptors` round `terminal`; the first is outermost.

    The result is a plain function: nothing can be added to it afterwards.

    >>> import anyio
    >>> def named(name):
    ...     async def interceptor(call, proceed):
    ...         return f"{name}({await proceed(call)})"
    ...     return interceptor
    >>> async def terminal(call):
    ...     return call
    >>> anyio.run(compose([named("outer"), named("inner")], terminal), "call")
    'outer(inner(call))'
    """
    handler = terminal
    for interceptor in reversed(interceptors):
        handler = _bind(interceptor, handler)
    return handler


# A plain function that returns the interceptor's awaitable: an `async def` here would add a
# coroutine a layer, about 60 ns of the 115 that a layer costs.
def _bind(interceptor: Interceptor, proceed: Handler) -> Handler:
    def handler(call: ToolCall) -> Awaitable[Outcome]:
        return interceptor(call, proceed)

    return handler
