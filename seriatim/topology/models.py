"""A resolved workspace: what is left when files, archetypes and defaults are worked in.

Everything here is immutable and free of positions; whatever was wrong has been said before one of
these exists.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, final

from interceptors import AgentId, JsonObject, SkillId, Tier, ToolRef


class Effect(Enum):
    """What a tool does to the world, as the workspace declares it."""

    READ = "read"
    WRITE = "write"
    UNDECLARED = "undeclared"


@final
@dataclass(frozen=True, slots=True)
class StdioTransport:
    """A server that is started as a process.

    Attributes:
        command: the argument vector; strings may hold `${VAR}`, here as in `env` and `cwd`.
        env: what the process gets beside the few variables that any process needs.
        cwd: where it starts; the workspace's directory unless said otherwise.
    """

    command: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str


@final
@dataclass(frozen=True, slots=True)
class HttpTransport:
    """A server that is reached over streamable HTTP; strings may hold `${VAR}`."""

    endpoint: str
    headers: Mapping[str, str]


Transport: TypeAlias = StdioTransport | HttpTransport


@final
@dataclass(frozen=True, slots=True)
class ServerDefinition:
    """An MCP server as the workspace defines it; nothing is expanded yet."""

    id: str
    transport: Transport
    tier: Tier
    tool_tiers: Mapping[str, Tier]
    effects: Mapping[str, Effect]


@final
@dataclass(frozen=True, slots=True)
class Skill:
    """An `mcp_tool` skill that an agent holds.

    Attributes:
        fixed: arguments that the workspace fixes; they win, and leave the advertised schema.
        required_scopes: `iam.required_scopes`.
        timeout: seconds that the tool may take.
        redact: names whose values the audit log does not show.
    """

    id: SkillId
    description: str
    tool: ToolRef
    fixed: JsonObject
    required_scopes: frozenset[str]
    timeout: float
    redact: frozenset[str]


@final
@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A `model:` block: SwarmKit's provider and model names, and its settings."""

    provider: str
    name: str
    temperature: float | None
    max_tokens: int | None


class Harness(Enum):
    """A program that drives an agent by itself, by how it is told where its tools are.

    `any` reads a file with `mcpServers`, or its environment.
    """

    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    GEMINI = "gemini"
    OPENCODE = "opencode"
    ANY = "any"


@final
@dataclass(frozen=True, slots=True)
class ModelExecutor:
    """Our own loop drives the agent, with a model."""


@final
@dataclass(frozen=True, slots=True)
class HarnessExecutor:
    """A harness drives the agent.

    Attributes:
        ref: the harness as the workspace names it, or `""`.
        harness: how it is told where its tools are.
        command: the argument vector that starts it; empty where nobody says what to start.
        arguments: what the harness gets beside what we give it.
    """

    ref: str
    harness: Harness
    command: tuple[str, ...]
    arguments: tuple[str, ...]


Executor: TypeAlias = ModelExecutor | HarnessExecutor
"""What drives an agent."""


@final
@dataclass(frozen=True, slots=True)
class Agent:
    """An agent with its archetype worked in.

    Attributes:
        skills: the `mcp_tool` skills it holds, in order. Skills of other types are left out: they
            are SwarmKit's business, and no rule may name them.
        requires: guarded skill -> its prerequisites, in the order written.
        scopes: base and elevated scopes, agent's and archetype's together.
        models: the `model:` block in a tuple of one, or an empty tuple.
        executor: what drives it, as its `executor:` says.
    """

    id: AgentId
    role: str
    description: str
    skills: tuple[Skill, ...]
    requires: Mapping[SkillId, tuple[SkillId, ...]]
    scopes: frozenset[str]
    models: tuple[ModelChoice, ...]
    prompt: str
    children: "tuple[Agent, ...]"
    executor: Executor


@final
@dataclass(frozen=True, slots=True)
class InterceptorSetting:
    """One entry of `interceptors:` in our settings.

    Attributes:
        use: an entry point of the group `seriatim.interceptors`, or `module:name`.
        position: `outer` stands outside the gate, `inner` inside it.
        settings: keyword arguments of the interceptor's factory.
        timeout: seconds that it may take for itself, the time of what it proceeds to left out.
    """

    use: str
    position: Literal["outer", "inner"]
    settings: JsonObject
    timeout: float


class Exposed(Enum):
    """What a gateway shows of the servers whose skills an agent holds."""

    TOOLS = "tools"
    RESOURCES = "resources"
    PROMPTS = "prompts"


@final
@dataclass(frozen=True, slots=True)
class Exposure:
    """What a gateway shows to which agent.

    Attributes:
        everyone: what it shows to the agents that are not named.
        agents: agent's id -> what it shows to that one.
    """

    everyone: frozenset[Exposed]
    agents: Mapping[AgentId, frozenset[Exposed]]

    def to(self, agent: AgentId) -> frozenset[Exposed]:
        return self.agents.get(agent, self.everyone)


TOOLS_ONLY: Final = Exposure(frozenset({Exposed.TOOLS}), MappingProxyType({}))
"""What a gateway shows where nobody says otherwise."""


@final
@dataclass(frozen=True, slots=True)
class GatewayLimits:
    """What a gateway takes on; what is beyond is turned away.

    Attributes:
        registrations: that it may hold at once; one takes about 50 KB.
        calls_in_flight: of one registration.
        sessions: of one registration, in MCP versions that have sessions; one takes about 50 KB.
        session_idle: seconds without a request after which a session ends.
        request_size: bytes of the body of one request.
    """

    registrations: int = 1000
    calls_in_flight: int = 32
    sessions: int = 256
    session_idle: float = 1800
    request_size: int = 64 * 1024 * 1024


@final
@dataclass(frozen=True, slots=True)
class Auth:
    """Whose signed tokens (JWT) a gateway takes beside its own, and whom they name.

    Attributes:
        keys: the issuer's public keys (JWKS): a URL, or a file relative to the workspace.
        algorithms: what a token may be signed with; key pairs alone.
        leeway: seconds by which the clocks may differ.
        agent_claim: the claim that names the agent.
        run_claim: the claim that names the run, or `""`: then all are of the gateway's own.
        agents: value of the agent's claim -> agent, where they are not the same.
    """

    issuer: str
    audience: str
    keys: str
    algorithms: tuple[str, ...]
    leeway: float
    agent_claim: str
    run_claim: str
    agents: Mapping[str, str]


@final
@dataclass(frozen=True, slots=True)
class Settings:
    """What `seriatim.yaml`, or a top-level `seriatim:`, says.

    Attributes:
        fail: `closed` refuses a call that the gate cannot decide, `open` lets it pass.
        max_calls: calls that one run may make, refusals included; `None` where the file is silent.
        redact: regular expressions for names whose values are not shown.
        audit: where the audit log is, as a URL or a path; `""` is the default place.
        pin: refuse calls of a tool whose definition is not what it was when the run began.
        expose: what a gateway shows beside tools.
        gateway: what a gateway takes on.
        auth: whose tokens it takes beside its own, in a tuple of one, or an empty tuple.
    """

    interceptors: tuple[InterceptorSetting, ...]
    fail: Literal["closed", "open"]
    max_calls: int | None
    redact: tuple[str, ...]
    audit: str
    pin: bool = False
    expose: Exposure = TOOLS_ONLY
    gateway: GatewayLimits = GatewayLimits()
    auth: tuple[Auth, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Topology:
    """A reviewed set of agents; `agents` holds every node by id, the root first."""

    name: str
    root: Agent
    agents: Mapping[AgentId, Agent]


@final
@dataclass(frozen=True, slots=True)
class Workspace:
    """Everything that a run needs to know of a workspace.

    Attributes:
        directory: the workspace's directory; for a one-file workspace, the directory of the file.
    """

    directory: Path
    id: str
    topologies: Mapping[str, Topology]
    servers: Mapping[str, ServerDefinition]
    settings: Settings
