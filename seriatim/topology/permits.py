"""What the tiers and effects of a workspace make of one skill."""

from interceptors import Permit
from seriatim.topology.models import Effect, ServerDefinition, Skill


def permit_of(skill: Skill, server: ServerDefinition, *, annotated_read_only: bool) -> Permit:
    """Return what a policy needs to know of a skill.

    Args:
        server: the one that the skill's tool is on.
        annotated_read_only: whether the server annotates the tool as read-only; counts where the
            workspace declares no effect.
    """
    tool = skill.tool.name
    own = tool in server.tool_tiers
    match server.effects.get(tool, Effect.UNDECLARED):
        case Effect.UNDECLARED:
            reads_only = annotated_read_only
        case effect:
            reads_only = effect is Effect.READ
    return Permit(
        tier=server.tool_tiers[tool] if own else server.tier,
        subject=f"tool {tool} of server {server.id}" if own else f"server {server.id}",
        required_scopes=skill.required_scopes,
        reads_only=reads_only,
    )
