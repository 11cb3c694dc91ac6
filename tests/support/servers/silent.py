"""A process that reads and never answers; `--stubborn` does not end when asked to, either."""

import signal
import sys
import time

if "--stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(60)
for _ in sys.stdin:
    pass
