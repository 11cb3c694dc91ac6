"""The workhorse, with a child that would outlive it; `CHILD_FILE` gets the child's pid."""

import os
import subprocess
import sys
from pathlib import Path

from counting import Server

if __name__ == "__main__":
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    child = subprocess.Popen(sleeper, stdin=subprocess.DEVNULL)
    Path(os.environ["CHILD_FILE"]).write_text(str(child.pid))
    Server().serve()
