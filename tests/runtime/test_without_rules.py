"""An agent without `requires:` runs as in a build that knows no such thing.

The other build is this one with the feature cut out: whatever would touch the gate's parts raises.
"""

import json
import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.settings import ModelSettings

import interceptors
import seriatim.runtime.assembly
from interceptors import MemoryAuditSink, RunId
from seriatim.runtime.model.model_loop import run_topology
from seriatim.runtime.model.providers import ChosenModel
from seriatim.runtime.run import Observers, open_run
from seriatim.topology import Workspace, load_workspace
from telemetry import Telemetry
from tests.support.mcp_servers import SERVERS
from tests.support.model_runs import Playing, Reply

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
PUBLIC = ROOT / "tests" / "data" / "swarmkit-workspaces"
CHANGES = {
    "event_id": "",
    "decision_id": "",
    "time": "",
    "call_id": "",
    "duration": 0,
    "trace_id": "",
    "span_id": "",
}


def example(directory: Path) -> tuple[Path, str]:
    """Return the example workspace, and the topology in which order is only asked for."""
    shutil.copytree(ROOT / "examples" / "conventions", directory / "workspace")
    return directory / "workspace", "asked"


def public(directory: Path) -> tuple[Path, str]:
    """Return a published workspace, its servers replaced by local ones with the same tools."""
    place = directory / "workspace"
    shutil.copytree(PUBLIC / "sterling-oms", place)
    tools: dict[str, list[str]] = {}
    for file in (place / "skills").glob("*.yaml"):
        implementation = yaml.safe_load(file.read_text(encoding="utf-8"))["implementation"]
        if implementation["type"] == "mcp_tool":
            tools.setdefault(implementation["server"], []).append(implementation["tool"])
    workspace = yaml.safe_load((place / "workspace.yaml").read_text(encoding="utf-8"))
    for server in workspace["mcp_servers"]:
        names = ",".join(sorted(set(tools.get(server["id"], ["none"]))))
        server["command"] = [sys.executable, str(SERVERS / "any_tools.py")]
        server["env"] = {"TOOLS": names}
        server["cwd"] = "."
    (place / "workspace.yaml").write_text(yaml.safe_dump(workspace), encoding="utf-8")
    return place, "single-agent-design"


def turns(workspace: Workspace, topology: str) -> list[Reply]:
    """Return turns that use every skill of the root, alone and together, and a wrong name."""
    skills = [skill.id for skill in workspace.topologies[topology].root.skills]
    calls = [(skill, {"kind": "console"}) for skill in skills]
    return [[calls[0]], calls, [("nonsense", {}), calls[-1]], "done"]


async def played(place: Path, name: str) -> dict[str, Any]:
    """Run a topology and return all that can be seen of it, without ids and times."""
    workspace = load_workspace(place)
    topology = workspace.topologies[name]
    model = Playing(*turns(workspace, name))
    chosen = ChosenModel("test", FunctionModel(model), ModelSettings(), frozenset())
    exporter, audit = InMemorySpanExporter(), MemoryAuditSink()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry = Telemetry(
        provider, NoOpMeterProvider(), traces=True, metrics=False, capture=True, close=lambda: None
    )
    async with open_run(
        RunId("r"),
        workspace,
        topology,
        [topology.root.id],
        audit=audit,
        max_calls=1000,
        environ={**os.environ, "SERIATIM_PYTHON": sys.executable},
        observers=Observers(telemetry),
    ) as run:
        models = dict.fromkeys(topology.agents, chosen)
        ending = await run_topology(run, models, "go", lambda _event: None)
    rows = sorted((asdict(record) | CHANGES for record in audit.records), key=json.dumps)
    return {
        "ending": ending,
        "rows": rows,
        "spans": sorted(map(shape, exporter.get_finished_spans())),
        "messages": [said(messages) for messages in model.seen],
    }


def shape(span: Any) -> str:
    attributes = {
        key: value
        for key, value in span.attributes.items()
        if key not in ("seriatim.decision.id", "gen_ai.tool.call.id", "jsonrpc.request.id")
    }
    events = [(event.name, sorted(event.attributes)) for event in span.events]
    parent = span.parent is not None
    return json.dumps([span.name, attributes, events, parent, span.status.status_code.name])


def said(messages: list[ModelMessage]) -> list[Any]:
    told = json.loads(ModelMessagesTypeAdapter.dump_json(messages))
    for message in told:
        for part in [message, *message["parts"]]:
            for key in ("timestamp", "tool_call_id", "run_id", "conversation_id"):
                part.pop(key, None)
    return told


def cut_out(patch: pytest.MonkeyPatch) -> None:
    """Make a build without the feature: its parts raise when anything reaches for them."""

    def absent(*_: object, **__: object) -> None:
        raise AssertionError("this build knows no prerequisites")

    for owner, names in {
        seriatim.runtime.assembly: ["PrerequisiteInterceptor"],
        interceptors.Rules: ["unmet", "steps"],
        interceptors.MemoryLedger: ["standing", "begin", "finish"],
    }.items():
        for name in names:
            patch.setattr(owner, name, absent)


@pytest.mark.parametrize("workspace", [example, public])
@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # a whole run; the gate's tests use both
async def test_a_topology_without_rules_gives_the_same_run_with_and_without_the_feature(
    tmp_path: Path, workspace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, topology = workspace(tmp_path)
    with_feature = await played(place, topology)
    with monkeypatch.context() as patch:
        cut_out(patch)
        without_feature = await played(place, topology)
    assert with_feature == without_feature
    assert len(with_feature["rows"]) > 4
    assert any(row["policy_decision"] == "deny" for row in with_feature["rows"])


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_same_run_with_rules_is_another(tmp_path: Path) -> None:
    place, _ = example(tmp_path)
    asked, ordered = await played(place, "asked"), await played(place, "ordered")
    assert asked["rows"] != ordered["rows"]
