"""Whatever servers call their tools, and say of them, what `init` writes is a sound workspace."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import mcp_types
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from interceptors import Tier, ToolRef
from seriatim.cli.init_plan import plan_files
from seriatim.cli.init_present import NOTHING, present_in
from seriatim.cli.init_source import Source
from seriatim.cli.init_variables import Variables
from seriatim.topology import ServerDefinition, Sound, StdioTransport, load

texts = st.text(max_size=60)
tools = st.builds(
    lambda name, title, description: mcp_types.Tool(
        name=name, title=title, description=description, input_schema={"type": "object"}
    ),
    name=texts,
    title=st.none() | texts,
    description=st.none() | texts | st.sampled_from(["yes", "# a\n- b: c", "'\"", "{a: [}"]),
)


def source(directory: Path, *servers: str) -> Source:
    definitions = [
        ServerDefinition(id_, StdioTransport(("x",), {}, str(directory)), Tier.CAUTIOUS, {}, {})
        for id_ in servers
    ]
    return Source(tuple(definitions), (), Variables({}))


@settings(max_examples=25, phases=[Phase.explicit, Phase.generate])
@given(a=st.lists(tools, min_size=1, max_size=4), b=st.lists(tools, max_size=4), more=tools)
def test_what_is_written_is_sound_and_so_is_what_is_added(
    a: list[mcp_types.Tool], b: list[mcp_types.Tool], more: mcp_types.Tool
) -> None:
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        both = source(directory, "a", "b")
        listed = {"a": {tool.name: tool for tool in a}, "b": {tool.name: tool for tool in b}}
        write(plan_files(directory, both, NOTHING, listed).files)
        wanted = {ToolRef(server, name) for server in listed for name in listed[server] if name}
        assert held(directory) == wanted
        if not wanted:
            return
        present = present_in(directory)
        again = plan_files(directory, both, present, listed)
        assert (again.files, again.new, dict(again.gone)) == ({}, (), {})
        listed["b"][more.name] = more
        added = plan_files(directory, both, present, listed)
        write(added.files)
        assert held(directory) == wanted
        new = {tool.ref for tool in added.new}
        assert new == {ToolRef("b", more.name)} - wanted - {ToolRef("b", "")}


def write(files: Mapping[Path, str]) -> None:
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)


def held(directory: Path) -> set[ToolRef]:
    """Return the tools of the workspace's agents; none where there is no workspace."""
    if not (directory / "workspace.yaml").exists():
        return set()
    loaded = load(directory)
    assert isinstance(loaded, Sound), loaded.problems
    assert loaded.problems == ()
    return {
        skill.tool
        for topology in loaded.workspace.topologies.values()
        for skill in topology.root.skills
    }
