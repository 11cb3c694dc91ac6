from interceptors import ToolCall, Via


def change(call: ToolCall) -> None:
    call.via = Via.MODEL  # expect: misc
    call.arguments["a"] = 1  # expect: index
