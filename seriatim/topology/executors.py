"""What drives an agent: the `executor:` of an agent, or of its archetype."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from seriatim.topology.fields import Fields
from seriatim.topology.models import Executor, Harness, HarnessExecutor, ModelExecutor
from seriatim.topology.problems import error, listing, suggestion, warning

PROGRAMS: Final[Mapping[Harness, tuple[str, ...]]] = MappingProxyType(
    {
        Harness.CLAUDE_CODE: ("claude",),
        Harness.CODEX: ("codex",),
        Harness.GEMINI: ("gemini",),
        Harness.OPENCODE: ("opencode",),
        Harness.ANY: (),
    }
)
"""The command of each harness, where nobody names another."""

_KINDS: Final[Mapping[str, Literal["model", "harness"]]] = {"model": "model", "harness": "harness"}
_REFS: Final = {
    "claude-code": Harness.CLAUDE_CODE,
    "codex": Harness.CODEX,
    "gemini": Harness.GEMINI,
    "gemini-cli": Harness.GEMINI,  # SwarmKit's own name for it
    "opencode": Harness.OPENCODE,
}
_CONFIG: Final = ("arguments", "command")
"""The fields of `config` that we apply; SwarmKit leaves its content to whoever runs the harness."""


def read_executor(fields: Fields) -> Executor:
    """Return what an `executor:` says, noting what is wrong with it."""
    if fields.choice("kind", _KINDS, "model") == "model":
        return ModelExecutor()
    noted = len(fields.problems)
    ref = fields.text("ref")
    harness = _REFS.get(ref, Harness.ANY)
    config = fields.section("config")
    command = _command(config) or PROGRAMS[harness]
    arguments = config.texts("arguments")
    if not command and len(fields.problems) == noted:
        _warn_of_nothing_to_start(fields, ref)
    _warn_of_others(config)
    return HarnessExecutor(ref, harness, command, arguments)


def _command(config: Fields) -> tuple[str, ...]:
    """Return the argument vector that starts the harness, or nothing where none is given."""
    noted = len(config.problems)
    command = config.texts("command")
    if config.entries("command") and len(config.problems) == noted and not any(command[:1]):
        hint = "write `command: [PROGRAM, ARGUMENT]`, or take it out"
        message = "`command` names no program"
        config.problems.append(error("schema.bad-value", message, config.place("command"), hint))
    return command


def _warn_of_others(config: Fields) -> None:
    for name, entry in config.node.entries.items():
        if name not in _CONFIG:
            message = f"`{name}` is not passed on to the harness"
            otherwise = "say it as a flag of the harness, in `arguments`, or take it out"
            hint = suggestion(name, _CONFIG, otherwise)
            config.problems.append(warning("executor.config-ignored", message, entry.key.at, hint))


def _warn_of_nothing_to_start(fields: Fields, ref: str) -> None:
    """Note a harness that `run` cannot start; the gateway serves it all the same."""
    otherwise = f"name one of {listing(_REFS)} with `ref`, or give `config: {{command: [PROGRAM]}}`"
    if ref:
        message = f"`{ref}` is no harness that can be started"
    else:
        message = "nothing says which harness to start"
    hint = suggestion(ref, _REFS, otherwise)
    at = fields.place("ref") if ref else fields.place("kind")
    fields.problems.append(warning("executor.unknown-harness", message, at, hint))
