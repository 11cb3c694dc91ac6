from interceptors import Handler, Interceptor, Outcome, RunId, Scope, ToolCall


async def without_proceed(call: ToolCall, /) -> Outcome:
    raise NotImplementedError


async def without_outcome(call: ToolCall, proceed: Handler, /) -> None:
    await proceed(call)


def not_awaitable(call: ToolCall, proceed: Handler, /) -> Outcome:
    raise NotImplementedError


one: Interceptor = without_proceed  # expect: assignment
two: Interceptor = without_outcome  # expect: assignment
three: Interceptor = not_awaitable  # expect: assignment
scope = Scope(RunId("r"))  # expect: call-arg
swapped = Scope("agent", RunId("r"))  # expect: arg-type
