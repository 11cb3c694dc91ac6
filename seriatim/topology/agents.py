"""Agents: each node of a topology, with its archetype worked in."""

from difflib import get_close_matches
from typing import Final, assert_never

from interceptors import AgentId, SkillId
from seriatim.topology.definitions import TOOL_NAME, Archetype, Catalogue
from seriatim.topology.executors import read_executor
from seriatim.topology.fields import Fields
from seriatim.topology.grants import Grants, read_grants
from seriatim.topology.models import Agent, Executor, HarnessExecutor, ModelChoice, ModelExecutor
from seriatim.topology.nodes import Entry, MapNode, ScalarNode
from seriatim.topology.order import Order
from seriatim.topology.problems import Location, Related, error, suggestion, warning


class AgentReader:
    """Reads the agents of one topology, and knows which ids are taken."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue: Final = catalogue
        self._places: Final[dict[str, Location]] = {}

    def read(self, fields: Fields, role: str) -> Agent:
        """Return the agent that a node holds, noting what is wrong with it and its children."""
        name = self._identified(fields)
        archetypes = self._archetypes(fields)
        unresolved = bool(fields.entries("archetype")) and not archetypes
        grants = self._grants(fields, archetypes, unresolved=unresolved)
        # SwarmKit writes an archetype's executor beside its `defaults`, all else within them.
        layers = (fields, *(archetype.defaults for archetype in archetypes))
        every = (*layers, *(archetype.whole for archetype in archetypes))
        scopes = _scopes(every)
        order = Order(fields, grants, scopes, self._catalogue)
        order.check()
        _refuse_near_misses(fields)
        model = _merged([layer.section("model") for layer in layers])
        executor = read_executor(_merged([layer.section("executor") for layer in every]))
        children = self._children(fields, grants)
        _warn_of_unreached(fields, name, executor, children)
        return Agent(
            id=AgentId(name),
            role=fields.text("role") or role,
            description=fields.text("description") or next((a.description for a in archetypes), ""),
            skills=grants.tools(),
            requires=order.requires,
            scopes=scopes,
            models=_models(model),
            prompt=_prompt(layers),
            children=children,
            executor=executor,
        )

    def _identified(self, fields: Fields) -> str:
        name = fields.required("id", "this agent")
        at = fields.place("id")
        if name and not TOOL_NAME.fullmatch(name):
            message = f"`{name}` cannot be an agent's id"
            hint = "use letters, digits, `-` and `_`, at most 128 of them"
            fields.problems.append(error("agent.bad-id", message, at, hint))
        if name in self._places:
            message = f"the agent id `{name}` is taken"
            first = Related(f"`{name}` stands here first", self._places[name])
            hint = "give one of the two another id"
            fields.problems.append(error("agent.duplicate-id", message, at, hint, first))
        elif name:
            self._places[name] = at
        return name

    def _archetypes(self, fields: Fields) -> tuple[Archetype, ...]:
        """Return the agent's archetype in a tuple of one, or nothing."""
        name = fields.text("archetype")
        known = self._catalogue.archetypes.known
        if not name:
            return ()
        if name in known:
            return (known[name],)
        if self._catalogue.archetypes.complete:
            hint = suggestion(name, known, "define the archetype, or take the line out")
            message = f"there is no archetype `{name}`"
            at = fields.place("archetype")
            fields.problems.append(error("agent.unknown-archetype", message, at, hint))
        return ()

    def _grants(
        self, fields: Fields, archetypes: tuple[Archetype, ...], *, unresolved: bool
    ) -> Grants:
        """Return what the agent holds: `skills` replaces the archetype's, and the rest adds."""
        inherited = [(archetype.defaults, "skills") for archetype in archetypes]
        own = fields.entries("skills")
        added = [(archetype.defaults, "skills_additional") for archetype in archetypes]
        base = [(fields, "skills")] if own else [*inherited, *added]
        grants = read_grants([*base, (fields, "skills_additional")], self._catalogue)
        return Grants(grants.held, grants.complete and (bool(own) or not unresolved))

    def _children(self, fields: Fields, grants: Grants) -> tuple[Agent, ...]:
        children = []
        for section in fields.sections("children"):
            child = self.read(section, "worker")
            children.append(child)
            twin = SkillId(child.id)
            if twin in grants.held:
                message = f"the child `{child.id}` has the id of a skill that its parent holds"
                hint = "rename the child: its parent could not tell the two tools apart"
                held = Related(f"`{child.id}` is granted here", grants.held[twin].at)
                at = section.place("id")
                fields.problems.append(error("agent.child-is-skill", message, at, hint, held))
        return tuple(children)


def _warn_of_unreached(
    fields: Fields, name: str, executor: Executor, children: tuple[Agent, ...]
) -> None:
    """Note children to whom nobody hands a task: a harness has its agent's skills, and no more."""
    match executor:
        case HarnessExecutor() if children:
            message = f"a harness drives `{name}`, and hands no tasks to its children"
            hint = "let a model drive it (`executor: {kind: model}`), or take the children out"
            at = fields.place("children")
            fields.problems.append(warning("executor.children-unreached", message, at, hint))
        case HarnessExecutor() | ModelExecutor():
            pass
        case _:
            assert_never(executor)


def _refuse_near_misses(fields: Fields) -> None:
    """Note a mapping under a name that is almost `requires`: it would guard nothing."""
    for name, entry in fields.node.entries.items():
        if name != "requires" and _looks_like_rules(name, entry):
            message = f"`{name}` is no field of an agent, and orders nothing"
            hint = "did you mean `requires`?"
            fields.problems.append(error("agent.misspelt-requires", message, entry.key.at, hint))


def _looks_like_rules(name: str, entry: Entry) -> bool:
    near = get_close_matches(name.lower(), ["requires"], n=1, cutoff=0.8)
    return bool(near) and isinstance(entry.value, MapNode)


def _merged(sections: list[Fields]) -> Fields:
    """Return one section out of several: of equal fields the first wins."""
    entries: dict[str, Entry] = {}
    for section in sections:
        entries = {**section.node.entries, **entries}
    first = sections[0]
    return Fields(MapNode(first.at, entries), first.problems)


def _scopes(layers: tuple[Fields, ...]) -> frozenset[str]:
    iam = [layer.section("iam") for layer in layers]
    return frozenset(
        scope
        for section in iam
        for name in ("base_scope", "elevated_scopes")
        for scope in section.texts(name)
    )


def _models(model: Fields) -> tuple[ModelChoice, ...]:
    provider, name = model.text("provider"), model.text("name")
    if not provider or not name:
        return ()
    return (
        ModelChoice(provider, name, model.number("temperature"), model.whole_number("max_tokens")),
    )


def _prompt(layers: tuple[Fields, ...]) -> str:
    """Return persona and system prompt, each from the nearest layer that has it."""
    sections = []
    for layer in layers:
        match [entry.value for entry in layer.entries("prompt")]:
            case [ScalarNode() as node]:
                entries = {"system": Entry(node, node)}
                sections.append(Fields(MapNode(node.at, entries), layer.problems))
            case _:
                sections.append(layer.section("prompt"))
    prompt = _merged(sections)
    parts = (prompt.text("persona"), prompt.text("system"))
    return "\n\n".join(part.strip() for part in parts if part.strip())
