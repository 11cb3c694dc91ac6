"""`${NAME}` in a server's definition, replaced from the environment when the server is started."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, assert_never, final

from seriatim.topology.models import HttpTransport, ServerDefinition, StdioTransport, Transport

VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class MissingVariableError(Exception):
    """A server's definition names a variable that the environment does not have.

    Attributes:
        server: the server's id.
        field: where the variable stands, as a path within the definition (`env.API_TOKEN`).
        variable: its name.
    """

    def __init__(self, server: str, field: str, variable: str) -> None:
        self.server: Final = server
        self.field: Final = field
        self.variable: Final = variable
        super().__init__(f"server `{server}`: {self.detail}")

    @property
    def detail(self) -> str:
        """What is wrong, as a clause that leaves the server out."""
        return f"`{self.field}` needs the environment variable `{self.variable}`, which is not set"


@final
@dataclass(frozen=True, slots=True)
class Expanded:
    """A server's transport without variables.

    Attributes:
        secrets: the values that came in through variables.
    """

    transport: Transport
    secrets: frozenset[str]


def expand(definition: ServerDefinition, environ: Mapping[str, str]) -> Expanded:
    """Replace each `${NAME}` in a definition; a value is not searched for variables again.

    Raises:
        MissingVariableError: when `environ` lacks a variable.
    """
    fields = _Fields(definition.id, environ)
    transport: Transport
    match definition.transport:
        case StdioTransport(command, env, cwd):
            transport = StdioTransport(
                command=tuple(
                    fields.expand(f"command.{index}", word) for index, word in enumerate(command)
                ),
                env=fields.expand_all("env", env),
                cwd=fields.expand("cwd", cwd),
            )
        case HttpTransport(endpoint, headers):
            transport = HttpTransport(
                endpoint=fields.expand("endpoint", endpoint),
                headers=fields.expand_all("headers", headers),
            )
        case _:
            assert_never(definition.transport)
    return Expanded(transport, frozenset(fields.values))


class _Fields:
    """Expands the fields of one definition, and gathers the values that went in."""

    def __init__(self, server: str, environ: Mapping[str, str]) -> None:
        self._server: Final = server
        self._environ: Final = environ
        self.values: Final[set[str]] = set()

    def expand(self, field: str, text: str) -> str:
        def value(match: re.Match[str]) -> str:
            name = match[1]
            if name not in self._environ:
                raise MissingVariableError(self._server, field, name)
            self.values.add(self._environ[name])
            return self._environ[name]

        return VARIABLE.sub(value, text)

    def expand_all(self, field: str, texts: Mapping[str, str]) -> dict[str, str]:
        return {name: self.expand(f"{field}.{name}", text) for name, text in texts.items()}
