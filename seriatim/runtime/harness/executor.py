"""A harness as executor: each task of its agent is one process, with the tools within its reach."""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

from interceptors import Redactor, Scope, printable
from seriatim.runtime.answers import NoAnswerError
from seriatim.runtime.events import AgentAsked, AgentSaid, Listener
from seriatim.runtime.harness.access import Access, open_access
from seriatim.runtime.harness.forms import Launch, Manner, filled, prepare
from seriatim.runtime.harness.process import Finished, work_on
from seriatim.runtime.run import Run
from seriatim.runtime.servers.server_log import ServerLog
from seriatim.topology.models import Agent, HarnessExecutor

TASK: Final = "{task}"
"""Where a command has this in its words, the task stands there; else it goes to stdin."""


class HarnessTasks:
    """Hands the tasks of an agent to its harness, a process for each.

    Each begins anew: the process has seen nothing, and the gate takes it so. It takes one task at a
    time: only the parent gives tasks, and its skill executor queues them.
    """

    def __init__(self, run: Run, agent: Agent, harness: HarnessExecutor, tell: Listener) -> None:
        self._run: Final = run
        self._agent: Final = agent
        self._harness: Final = harness
        self._tell: Final = tell

    async def ask(self, task: str) -> str:
        """Give the harness a task, behind the agent's own prompt, and return what it answers.

        Raises:
            NoAnswerError: when it cannot be started, or does not end well.
            InterceptorError: when a user's interceptor cannot be had.
        """
        self._tell(AgentAsked(self._agent.id, task))
        with self._run.spans.agent(Scope(self._run.id, self._agent.id), self._run.topology.name):
            # Its calls belong to this task, unless it sends a trace of its own.
            run = replace(self._run, spans=self._run.spans.under_current())
            async with open_access(run, self._agent.id) as access:
                finished = await self._finished(access, task)
            if finished.fate:
                raise self._no_answer(
                    ": ".join(part for part in (finished.fate, finished.last_words) if part), access
                )
        self._tell(AgentSaid(self._agent.id, finished.answer))
        return finished.answer

    async def _finished(self, access: Access, task: str) -> Finished:
        text = "\n\n".join(part for part in (self._agent.prompt, task) if part)
        with tempfile.TemporaryDirectory(
            prefix="seriatim-", ignore_cleanup_errors=True
        ) as directory:
            try:
                launch = prepare(
                    self._harness.harness,
                    self._harness.command,
                    self._harness.arguments,
                    Manner.ONE_TASK,
                    access,
                    Path(directory),
                )
                if any(TASK in word for word in launch.command):
                    command = filled(launch.command, {TASK: text})
                    launch, text = Launch(command, launch.environment), ""
                return await work_on(launch, text, self._log(access))
            except OSError as error:
                reason = (error.strerror or type(error).__name__).lower()
                raise self._no_answer(f"cannot be started: {reason}", access) from error

    def _log(self, access: Access) -> ServerLog:
        folder = self._run.workspace.directory / ".seriatim" / "harnesses"
        return ServerLog(folder / f"{self._agent.id}.log", self._secrets(access))

    def _secrets(self, access: Access) -> frozenset[str]:
        return self._run.servers.secrets | {access.token}

    def _no_answer(self, why: str, access: Access) -> NoAnswerError:
        shown = printable(Redactor(self._secrets(access)).text(why))
        return NoAnswerError(f"the harness of agent `{self._agent.id}` gave no answer: {shown}")
