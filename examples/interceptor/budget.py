from interceptors import Handler, Outcome, Refused, ToolCall, Withheld


class Budget:
    def __init__(self, calls: int) -> None:
        self.left = calls

    async def __call__(self, call: ToolCall, proceed: Handler, /) -> Outcome:
        if not self.left:
            return Refused(Withheld("budget", "The budget is used up. Finish without tools."))
        self.left -= 1
        return await proceed(call)
