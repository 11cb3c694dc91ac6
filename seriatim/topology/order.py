"""The `requires:` of one agent: read, and checked against what the agent holds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, assert_never, final

from interceptors import Allowed, Denied, Permit, Rules, SkillId, Tier, ToolRef, judge
from seriatim.topology.definitions import Catalogue, ForeignSkill
from seriatim.topology.fields import Fields
from seriatim.topology.grants import Grants
from seriatim.topology.graph import cycles, dependants
from seriatim.topology.models import Skill
from seriatim.topology.nodes import Entry, ListNode, MapNode, Node, ScalarNode, kind_of
from seriatim.topology.permits import permit_of
from seriatim.topology.problems import (
    Location,
    Problem,
    Related,
    error,
    listing,
    suggestion,
    warning,
)

_Requires = Mapping[SkillId, tuple[SkillId, ...]]

SHAPE: Final = "a rule's value is a list of skill ids"


@final
@dataclass(frozen=True, slots=True)
class _Rule:
    """One rule that has the right shape: the guarded skill's key, and the requirements."""

    key: ScalarNode
    steps: tuple[ScalarNode, ...]


class Order:
    """The rules of one agent.

    Args:
        fields: the agent node.
        scopes: what the agent may use, its archetype's scopes included.
    """

    def __init__(
        self, fields: Fields, grants: Grants, scopes: frozenset[str], catalogue: Catalogue
    ) -> None:
        self._agent: Final = fields.any_text("id")
        self._problems: Final[list[Problem]] = fields.problems
        self._grants: Final = grants
        self._scopes: Final = scopes
        self._catalogue: Final = catalogue
        self._rules: Final = {SkillId(rule.key.text): rule for rule in self._read(fields)}
        self.requires: Final[_Requires] = {
            guarded: tuple(dict.fromkeys(SkillId(step.text) for step in rule.steps))
            for guarded, rule in self._rules.items()
        }

    def check(self) -> None:
        """Note what is wrong with the rules."""
        for rule in self._rules.values():
            self._named(rule.key)
            for step in rule.steps:
                self._named(step)
            self._repeated(rule)
        for circle in cycles(self.requires):
            self._circle(circle)
        self._denied()
        self._bypassed()

    def _read(self, fields: Fields) -> Iterable[_Rule]:
        for field in fields.written("requires"):
            match field.value:
                case MapNode(_, entries) if entries:
                    for entry in entries.values():
                        yield from self._rule(entry)
                case MapNode() | ScalarNode(value=None):
                    message = f"the rules of agent `{self._agent}` are empty, and order nothing"
                    hint = "indent the rules further than `requires`, or take it out"
                    problem = error("agent.requires-empty", message, field.key.at, hint)
                    self._problems.append(problem)
                case node:
                    message = f"`requires` must be a mapping, and is {kind_of(node)}"
                    hint = "write `GUARDED: [PREREQUISITE]` lines under it"
                    self._problems.append(error("agent.bad-requires", message, node.at, hint))

    def _rule(self, entry: Entry) -> Iterable[_Rule]:
        key, name = entry.key, entry.key.text
        if not isinstance(key.value, str) or not name:
            message = f"the guarded skill must be a text, and is {kind_of(key)}"
            hint = "write a skill id; quote it where YAML reads something else in it"
            self._problems.append(error("agent.bad-requires", message, key.at, hint))
            return
        match entry.value:
            case ListNode(at, ()):
                message = f"the rule for `{name}` is empty"
                hint = f"name what must come before `{name}`, or take the rule out"
                self._problems.append(error("agent.requires-empty", message, at, hint))
            case ListNode(_, items):
                steps = [step for item in items for step in self._step(name, item)]
                if steps:
                    yield _Rule(key, tuple(steps))
            case ScalarNode(value=None) as node:
                message = f"the rule for `{name}` is empty: {SHAPE}"
                hint = f"name what must come before `{name}`, or take the rule out"
                self._problems.append(error("agent.bad-requires", message, node.at, hint))
            case node:
                text = node.text if isinstance(node, ScalarNode) and node.value == node.text else ""
                message = f"{SHAPE}, and the one of `{name}` is {kind_of(node)}"
                hint = f"write `{name}: [{text or 'PREREQUISITE'}]`"
                self._problems.append(error("agent.bad-requires", message, node.at, hint))

    def _step(self, name: str, item: Node) -> Iterable[ScalarNode]:
        match item:
            case ScalarNode(_, _, str() as text) if text:
                yield item
            case ScalarNode(at, _, str()):
                message = f"{SHAPE}, and the one of `{name}` holds an empty text"
                hint = "name the prerequisite, or take the empty text out"
                self._problems.append(error("agent.bad-requires", message, at, hint))
            case _:
                message = f"{SHAPE}, and the one of `{name}` holds {kind_of(item)}"
                hint = "name each prerequisite by its skill id, as a text"
                self._problems.append(error("agent.bad-requires", message, item.at, hint))

    def _named(self, node: ScalarNode) -> None:
        """Check that a skill in a rule is a tool that the agent holds."""
        skill = SkillId(node.text)
        if skill not in self._grants.held:
            if not self._grants.complete:
                return
            message = f"agent `{self._agent}` does not hold the skill `{skill}`"
            if skill in self._catalogue.skills.known:
                hint = f"add `{skill}` to the agent's skills, or take it out of the rule"
            else:
                held = self._grants.held
                hint = suggestion(skill, held, f"the agent holds {listing(held)}")
            self._problems.append(error("agent.requires-unknown-skill", message, node.at, hint))
            return
        match self._grants.held[skill].meaning:
            case ForeignSkill(kind):
                message = f"`{skill}` is of type `{kind}`, and rules order `mcp_tool` skills only"
                hint = "take it out of the rule"
                problem = error("agent.requires-not-a-tool", message, node.at, hint)
                self._problems.append(problem)
            case _:
                pass

    def _repeated(self, rule: _Rule) -> None:
        first: dict[str, Location] = {}
        for step in rule.steps:
            if step.text in first:
                message = f"`{rule.key.text}` requires `{step.text}` twice"
                related = Related(f"`{step.text}` stands here first", first[step.text])
                hint = "take one out"
                problem = warning("agent.requires-duplicate", message, step.at, hint, related)
                self._problems.append(problem)
            first.setdefault(step.text, step.at)

    def _circle(self, circle: tuple[SkillId, ...]) -> None:
        way = " -> ".join((*circle, circle[0]))
        at = self._rules[circle[0]].key.at
        if len(circle) == 1:
            message = f"`{circle[0]}` requires itself (`{way}`); it can never be called"
            hint = f"take `{circle[0]}` out of its own rule"
        else:
            none = "none of them" if circle[2:] else "neither"
            message = f"`{way}` is a cycle; {none} can ever be called"
            hint = "remove one of these rules"
        related = (
            Related(f"`{skill}` requires `{step}` here", self._rules[skill].key.at)
            for skill, step in zip(circle[1:], (*circle, circle[0])[2:], strict=True)
        )
        self._problems.append(error("agent.requires-cycle", message, at, hint, *related))

    def _denied(self) -> None:
        """Note each prerequisite that the policy will never let the agent call."""
        for guarded, rule in self._rules.items():
            for step in rule.steps:
                for reason, hint in self._denial(SkillId(step.text)):
                    dead = (guarded, *dependants(guarded, self.requires))
                    message = (
                        f"agent `{self._agent}` may never call `{step.text}` ({reason}), "
                        f"so {listing(dead)} can never run"
                    )
                    related = (
                        Related(f"`{skill}` waits for `{step.text}` too", self._rules[skill].key.at)
                        for skill in dead[1:]
                    )
                    problem = error("agent.requires-denied", message, step.at, hint, *related)
                    self._problems.append(problem)

    def _denial(self, name: SkillId) -> tuple[tuple[str, str], ...]:
        """Return why the policy denies a skill, and a hint, in a tuple of one; or nothing."""
        for skill in self._grants.tools():
            if skill.id == name and skill.tool.server in self._catalogue.servers.known:
                server = self._catalogue.servers.known[skill.tool.server]
                # Where nothing is declared only the server knows: it gets the benefit of the doubt.
                permit = permit_of(skill, server, annotated_read_only=True)
                match judge(permit, skill.tool, self._scopes):
                    case Denied(reason):
                        return ((reason, _way_to(skill.tool, permit)),)
                    case Allowed():
                        pass
        return ()

    def _bypassed(self) -> None:
        """Note each unguarded skill that reaches the tool of a guarded one."""
        rules = Rules(self.requires)
        tools = {skill.id: skill for skill in self._grants.tools()}
        for guarded, rule in self._rules.items():
            if guarded not in tools:
                continue
            tool = tools[guarded].tool
            for other in tools.values():
                if other.tool != tool or other.id in self.requires:
                    continue
                if other.id in rules.steps(guarded) and _kept_apart(tools[guarded], other):
                    continue
                message = (
                    f"`{other.id}` is a way round this rule: it too is tool `{tool.name}` of "
                    f"server `{tool.server}`, and has no rule"
                )
                hint = f"give `{other.id}` the same rule, or take it from the agent"
                related = Related(f"`{other.id}` is granted here", self._grants.held[other.id].at)
                problem = error("agent.requires-bypass", message, rule.key.at, hint, related)
                self._problems.append(problem)


def _kept_apart(guarded: Skill, step: Skill) -> bool:
    """Whether fixed arguments keep a prerequisite from doing what the guarded skill does.

    Such a pair is two steps of one tool, and no rule could guard the first of them.
    """
    return any(
        name in step.fixed and step.fixed[name] != value for name, value in guarded.fixed.items()
    )


def _way_to(tool: ToolRef, permit: Permit) -> str:
    """Return a hint: how an agent comes to use a tool that it is denied."""
    match permit.tier:
        case Tier.STRICT:
            scope = f"mcp:call:{tool.server}:{tool.name}"
            return f"add `{scope}` to the agent's `iam: base_scope`, or take the rule out"
        case Tier.READONLY if not permit.reads_only:
            return f"correct the `effects` of `{tool.name}` if it only reads, or take the rule out"
        case Tier.READONLY | Tier.CAUTIOUS | Tier.OPEN:
            return "add what it lacks to the agent's `iam: base_scope`, or take the rule out"
        case _:
            assert_never(permit.tier)
