"""The workhorse, which floods stdout or stderr, as its argument says, from its first answer on."""

import os
import sys
import threading

from counting import Server
from tool_box import Json

FLOOD = b'{"jsonrpc": "2.0", "method": "notifications/message"}\n' * 1_000


class FloodingServer(Server):
    def _send(self, message: Json) -> None:
        super()._send(message)
        if "tools" in message.get("result", {}):
            threading.Thread(target=flood).start()


def flood() -> None:
    while True:
        os.write(1 if "stdout" in sys.argv else 2, FLOOD)


if __name__ == "__main__":
    FloodingServer().serve()
