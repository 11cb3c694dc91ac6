"""Every name that stands in a span, an event or a metric, written once.

Literals, because the published Python package of the conventions marks the `gen_ai` names as moved
and deprecated. A comment over each group gives its source and stability.
"""

from typing import Final

SCOPE: Final = "seriatim"
"""The instrumentation scope of everything that we emit, and the default service name."""

# OpenTelemetry semantic conventions 1.44.0: stable.
ERROR_TYPE: Final = "error.type"

# OpenTelemetry semantic conventions for generative AI 0.1.0 (repository `semantic-conventions-
# genai`, agent, inference and tool execution spans): development.
OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
AGENT: Final = "gen_ai.agent.name"
CONVERSATION: Final = "gen_ai.conversation.id"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"

# The same source: values of `gen_ai.operation.name`, which are the first word of the span's name,
# and of `gen_ai.tool.type`: an extension is run on the agent's side and reaches outward.
INVOKE_AGENT: Final = "invoke_agent"
CHAT: Final = "chat"
EXECUTE_TOOL: Final = "execute_tool"
EXTENSION: Final = "extension"

# Ours, unprefixed because people search for it; fixed with its values by DESIGN.md, section 5.
POLICY_DECISION: Final = "policy_decision"
ALLOW: Final = "allow"
DENY: Final = "deny"

# Ours: attributes. No convention for policy decisions is merged anywhere.
RUN: Final = "seriatim.run"
TOPOLOGY: Final = "seriatim.topology"
DECISION_ID: Final = "seriatim.decision.id"
VIA: Final = "seriatim.via"
SERVER: Final = "seriatim.server"
TOOL: Final = "seriatim.tool"
RULE: Final = "seriatim.rule.id"
REASON: Final = "seriatim.reason"
MISSING: Final = "seriatim.missing"
REMEDY: Final = "seriatim.remedy"
COMPLETED: Final = "seriatim.completed"
OUTCOME: Final = "seriatim.outcome"
PREREQUISITE: Final = "seriatim.prerequisite"
LINK: Final = "seriatim.link"
CHANGE: Final = "seriatim.change"
SIGNAL: Final = "seriatim.signal"

# Ours: the value of `seriatim.link` on a link from a success to the refusal that led to it.
RECOVERED_FROM: Final = "recovered_from"

# Ours: the event of a refusal, the event of a tool that changed and its span, and the span under
# which a gateway registration's calls stand.
REFUSAL_EVENT: Final = "seriatim.refusal"
TOOL_CHANGED_EVENT: Final = "seriatim.tool.changed"
REGISTRATION: Final = "seriatim.registration"

# Ours: metrics. No `_total` and no unit in a name: back ends add them.
DECISIONS: Final = "seriatim.decisions"
MISSED: Final = "seriatim.prerequisites.missed"
CALL_DURATION: Final = "seriatim.call.duration"
CALLS_ACTIVE: Final = "seriatim.calls.active"
GATE_DURATION: Final = "seriatim.gate.duration"
RECOVERIES: Final = "seriatim.recoveries"
RECOVERY_CALLS: Final = "seriatim.recovery.calls"
UNRECOVERED: Final = "seriatim.unrecovered"
AUDIT_QUEUE: Final = "seriatim.audit.queue"
TELEMETRY_DROPPED: Final = "seriatim.telemetry.dropped"

# Bucket boundaries. Calls: those that the MCP conventions give for operation durations, in seconds.
# The gate: from a bare decision (tens of microseconds) to a store that has trouble, in seconds.
CALL_SECONDS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
GATE_SECONDS: Final = (
    *(0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01),
    *(0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)
RECOVERY_STEPS: Final = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 50)

UNKNOWN: Final = "(unknown)"
"""Stands in a metric for a name that the topology does not hold."""
