"""The workhorse, with noise on stdout before its start and before each of its messages.

A text `garble` that it is asked to `forge` makes the whole answer no valid message; a text
`surrogate` becomes half a character.
"""

import sys

from counting import Server
from tool_box import Json

NOISE = (
    b'Starting up!\n\n{"level": "info"}\n[1, 2]\n\xff\xfe not UTF-8\n{"jsonrpc": "2.0", "id": 1\n'
)


class NoisyServer(Server):
    def _send(self, message: Json) -> None:
        with self._output:
            sys.stdout.buffer.write(NOISE)
            sys.stdout.buffer.flush()
        match message:
            case {"result": {"content": [{"text": "garble"}]}}:
                message["result"] = "garbled"
            case {"result": {"content": [{"text": "surrogate"} as block]}}:
                block["text"] = "half \ud800"
        super()._send(message)


if __name__ == "__main__":
    sys.stdout.buffer.write(NOISE)
    NoisyServer().serve()
