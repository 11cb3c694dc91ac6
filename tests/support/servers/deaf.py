"""The workhorse, which stops reading once it has listed its tools; `--ask` asks without end."""

import itertools
import sys
import time

from counting import Server
from tool_box import Json


class DeafServer(Server):
    def _send(self, message: Json) -> None:
        super()._send(message)
        if "tools" in message.get("result", {}):
            for number in itertools.count() if "--ask" in sys.argv else ():
                super()._send({"id": f"q{number}", "method": "ping"})
            time.sleep(600)


if __name__ == "__main__":
    DeafServer().serve()
