"""The shape of the code base, read from its syntax trees."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted(
    path
    for package in ("interceptors", "telemetry", "seriatim")
    for path in (ROOT / package).rglob("*.py")
)
ALL_FILES = sorted(
    path
    for folder in ("interceptors", "telemetry", "seriatim", "tests", "benchmarks", "examples")
    for path in (ROOT / folder).rglob("*.py")
)

FLOORS = {
    "interceptors": 0,
    "telemetry": 1,
    "seriatim.topology": 1,
    "seriatim.stores": 2,
    "seriatim.runtime.servers": 3,
    "seriatim.runtime.gateway": 5,
    "seriatim.runtime.harness": 6,
    "seriatim.runtime.model": 7,
    "seriatim.runtime": 4,
    "seriatim.demo": 4,
    "seriatim.cli": 8,
}
"""Imports go down only, and never from one house of a floor to its neighbour."""

LONGEST_FILE = 500


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def floor_of(module: str) -> str | None:
    for package in FLOORS:
        if module == package or module.startswith(f"{package}."):
            return package
    return None


def imports_of(path: Path) -> Iterator[str]:
    """Yield the full name of everything that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module, names, level):
                assert level == 0, f"{path}: relative import"
                yield from (f"{module}.{alias.name}" for alias in names)


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def is_of(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_imports_go_down_only(path: Path) -> None:
    here = floor_of(module_of(path))
    for imported in imports_of(path):
        there = floor_of(imported)
        if here is None or there is None or here == there:
            continue
        assert FLOORS[there] < FLOORS[here], f"{here} imports {imported}"


def test_what_stands_on_no_floor_is_known() -> None:
    # The package itself, and the script that hands over to the command.
    outside = {named(path) for path in SOURCES if floor_of(module_of(path)) is None}
    assert outside == {"seriatim/__init__.py", "seriatim/__main__.py"}


@pytest.mark.parametrize(
    "path", [path for path in SOURCES if is_of(module_of(path), "interceptors")], ids=named
)
def test_the_chain_imports_the_standard_library_and_anyio_only(path: Path) -> None:
    tops = {imported.partition(".")[0] for imported in imports_of(path)}
    assert tops <= sys.stdlib_module_names | {"anyio", "interceptors"}


def test_the_chain_can_be_used_with_nothing_but_anyio_installed() -> None:
    program = """
import importlib.abc, sys
anyio_and_its_own = {"anyio", "idna", "sniffio", "typing_extensions"}
allowed = sys.stdlib_module_names | anyio_and_its_own | {"interceptors"}
class Nothing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in allowed:
            raise ModuleNotFoundError(f"{name} is not installed", name=name)
sys.meta_path.insert(0, Nothing())
import interceptors
assert all(hasattr(interceptors, name) for name in interceptors.__all__)
import anyio
async def main():
    async def terminal(call):
        return "done"
    assert await interceptors.compose([], terminal)(None) == "done"
anyio.run(main)
"""
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_the_opentelemetry_sdk_is_imported_in_one_file() -> None:
    found = {
        named(path)
        for path in SOURCES
        if any(
            is_of(imported, "opentelemetry.sdk") or is_of(imported, "opentelemetry.exporter")
            for imported in imports_of(path)
        )
    }
    assert found <= {"telemetry/setup.py"}


def users_of(names: set[str]) -> set[str]:
    """Return the files that read one of `names`, bare or as an attribute."""
    return {
        named(path)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.Attribute) and node.attr in names)
    }


def writers_of(text: str) -> set[str]:
    """Return the files in which a string of that text stands."""
    return {
        named(path)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value == text
    }


def test_one_place_sends_a_call_to_a_server_and_one_asks_it_to() -> None:
    # The SDK offers two ways: a session's `call_tool`, and a request sent by hand. Beside the wire,
    # a session widens what the SDK sends by itself, and the gateway sends requests to its clients.
    assert users_of({"CallToolRequest", "send_request"}) == {
        "seriatim/runtime/gateway/clients.py",
        "seriatim/runtime/servers/session.py",
        "seriatim/runtime/servers/wire.py",
    }
    # The gateway answers them.
    assert writers_of("tools/call") == {
        "seriatim/runtime/gateway/server.py",
        "seriatim/runtime/servers/wire.py",
    }
    assert users_of({"send_call"}) == {"seriatim/runtime/servers/connection.py"}
    sessions = {
        named(path)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "call_tool"
    }
    assert sessions == set()


def test_nothing_but_execution_asks_a_connection_to_call() -> None:
    # `Servers.call` is the only way to a connection; its holder in the chain is `_servers`.
    found = {
        named(path)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "call"
        and ast.unparse(node.func.value).endswith("servers")
    }
    assert found == {"interceptors/execution.py"}


def test_one_place_composes_a_chain() -> None:
    found = {
        named(path)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "compose"
    }
    assert found == {"seriatim/runtime/assembly.py"}


@pytest.mark.parametrize("path", ALL_FILES, ids=named)
def test_no_file_is_too_long_to_read(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE


@pytest.mark.parametrize("path", ALL_FILES, ids=named)
def test_every_exemption_from_a_check_names_it_and_gives_its_reason(path: Path) -> None:
    exemption = re.compile(r"#\s*(noqa|type:\s*ignore|pragma|ruff:|mypy:)(?P<rest>.*)")
    reasoned = re.compile(
        r"(:\s*[A-Z]+\d+(,\s*[A-Z]+\d+)*\s+\S.*)|(\[[\w-]+(,\s*[\w-]+)*\]\s+#\s+\S.*)"
    )
    for line in path.read_text(encoding="utf-8").splitlines():
        found = exemption.search(line)
        if found and "re.compile" not in line:
            assert reasoned.match(found["rest"]), line
