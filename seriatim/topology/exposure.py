"""The setting `expose`: what a gateway shows beside tools, to all agents or to each its own.

Either a list, which is for every agent, or a mapping of agents to such lists.
"""

from collections.abc import Collection
from types import MappingProxyType
from typing import Final

from interceptors import AgentId
from seriatim.topology.fields import Fields
from seriatim.topology.models import TOOLS_ONLY, Exposed, Exposure
from seriatim.topology.nodes import ListNode, MapNode, ScalarNode
from seriatim.topology.problems import error, listing, suggestion

_KINDS: Final = {kind.value: kind for kind in Exposed}


def read_exposure(settings: Fields, agents: Collection[AgentId]) -> Exposure:
    """Return what is exposed to whom, noting what is wrong with it.

    Args:
        agents: the agents of all topologies.
    """
    for entry in settings.entries("expose"):
        match entry.value:
            case ListNode():
                return Exposure(_kinds(settings, "expose"), TOOLS_ONLY.agents)
            case MapNode() as node:
                return _by_agent(Fields(node, settings.problems), agents)
            case node:
                hint = "write `[tools, resources]`, or one such list under each agent's id"
                settings.mismatch(node, "expose", "a list or a mapping of agents to lists", hint)
    return TOOLS_ONLY


def _by_agent(fields: Fields, agents: Collection[AgentId]) -> Exposure:
    for name, entry in fields.node.entries.items():
        if name not in agents:
            message = f"no topology has an agent `{name}`"
            hint = suggestion(name, agents, f"the agents are {listing(sorted(agents))}")
            fields.problems.append(error("settings.bad-value", message, entry.key.at, hint))
    by_agent = {AgentId(name): _kinds(fields, name) for name in fields.node.entries}
    return Exposure(TOOLS_ONLY.everyone, MappingProxyType(by_agent))


def _kinds(fields: Fields, name: str) -> frozenset[Exposed]:
    kinds: set[Exposed] = set()
    for item in fields.items(name):
        match item:
            case ScalarNode(_, text, _) if text in _KINDS:
                kinds.add(_KINDS[text])
            case ScalarNode(at, text, _):
                message = f"`{name}` may not hold `{text}`"
                hint = suggestion(text, _KINDS, f"it holds some of {listing(_KINDS)}")
                fields.problems.append(error("settings.bad-value", message, at, hint))
            case node:
                hint = f"it holds some of {listing(_KINDS)}"
                fields.mismatch(node, name, "a list of texts", hint)
    is_list = any(isinstance(entry.value, ListNode) for entry in fields.entries(name))
    if is_list and not kinds >= TOOLS_ONLY.everyone:
        message = f"`{name}` leaves out `tools`, which are always shown"
        hint = "add `tools`; to show an agent fewer tools, take skills from it"
        fields.problems.append(error("settings.bad-value", message, fields.place(name), hint))
    return TOOLS_ONLY.everyone | kinds
