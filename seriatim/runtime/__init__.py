"""What happens while agents run.

`dispatch` is the one seam, `assembly` the one place that composes a chain. `servers` reaches MCP
servers; `model` and `gateway` are the two executors, and `harness` starts programs that drive an
agent through the gateway.

What is exported here is what an application needs that drives agents by itself: it opens a run,
assembles an agent, and hands each of the agent's turns to `governed_mcp_call`.
"""

from seriatim.runtime.assembly import assemble
from seriatim.runtime.dispatch import NO_LIMIT, GovernedAgent, Request, governed_mcp_call
from seriatim.runtime.engines import Engines
from seriatim.runtime.run import Observers, Run, open_run

__all__ = [
    "NO_LIMIT",
    "Engines",
    "GovernedAgent",
    "Observers",
    "Request",
    "Run",
    "assemble",
    "governed_mcp_call",
    "open_run",
]
