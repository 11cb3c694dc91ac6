"""Library manners: the SDK stands in one file, and importing us sets nothing."""

import ast
import subprocess
import sys
from pathlib import Path

import interceptors
import seriatim
import telemetry

PACKAGES = [Path(str(package.__file__)).parent for package in (interceptors, seriatim, telemetry)]
SDK = ("opentelemetry.sdk", "opentelemetry.exporter")


def modules_imported_by(source: str) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def test_the_sdk_is_imported_in_one_file() -> None:
    importing = {
        file.relative_to(package.parent).as_posix()
        for package in PACKAGES
        for file in package.rglob("*.py")
        if any(name.startswith(SDK) for name in modules_imported_by(file.read_text()))
    }
    assert importing == {"telemetry/setup.py"}


def test_telemetry_imports_the_chain_and_the_api_only() -> None:
    for file in PACKAGES[2].rglob("*.py"):
        roots = {name.partition(".")[0] for name in modules_imported_by(file.read_text())}
        assert roots <= {"interceptors", "telemetry", "opentelemetry"} | sys.stdlib_module_names


def test_importing_sets_no_global_provider_and_loads_no_sdk() -> None:
    script = (
        "import sys, interceptors, telemetry\n"
        "from opentelemetry import metrics, trace\n"
        "print(type(trace.get_tracer_provider()).__name__)\n"
        "print(type(metrics.get_meter_provider()).__name__)\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry.sdk')])\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["ProxyTracerProvider", "_ProxyMeterProvider", "[]"]


def test_what_is_exported_exists_and_is_sorted() -> None:
    assert sorted(telemetry.__all__) == telemetry.__all__
    assert all(hasattr(telemetry, name) for name in telemetry.__all__)
