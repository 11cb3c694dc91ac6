"""Users' interceptors: how they are named, found and made."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from interceptors import IsolatedInterceptor, JsonObject, Redactor
from seriatim.runtime.plugins import GROUP, InterceptorError, make_interceptor
from seriatim.topology import InterceptorSetting

SOURCE = """\
class Budget:
    def __init__(self, calls: int = 1) -> None:
        self.calls = calls

    async def __call__(self, call, proceed, /):
        return await proceed(call)


class Shop:
    Stamp = Budget


def broken(**settings):
    raise RuntimeError("no such shop")


def nothing():
    return None
"""


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A workspace with a module in it, and a distribution that offers an interceptor."""
    (tmp_path / "my_budget.py").write_text(SOURCE)
    installed = tmp_path / "site" / "stamps-1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: stamps\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(f"[{GROUP}]\nstamp = my_budget:Shop.Stamp\n")
    path = sys.path[:]
    monkeypatch.setattr(sys, "path", [*path, str(tmp_path / "site")])
    yield tmp_path
    sys.modules.pop("my_budget", None)


def made(use: str, directory: Path, settings: JsonObject | None = None) -> IsolatedInterceptor:
    setting = InterceptorSetting(use, "inner", settings or {}, 10)
    return make_interceptor(setting, directory, Redactor())


@pytest.mark.parametrize("use", ["my_budget:Budget", "my_budget:Shop.Stamp"])
def test_a_module_in_the_workspace_is_found_by_module_and_name(directory: Path, use: str) -> None:
    assert isinstance(made(use, directory, {"calls": 3}), IsolatedInterceptor)


def test_an_installed_one_is_found_by_its_entry_point(directory: Path) -> None:
    sys.path.append(str(directory))
    assert isinstance(made("stamp", directory, {"calls": 3}), IsolatedInterceptor)


@pytest.mark.parametrize(
    ("use", "settings", "problem"),
    [
        ("stump", {}, "there is no interceptor `stump` in the group `seriatim.interceptors`"),
        ("no_such_module:Budget", {}, "`no_such_module:Budget` cannot be imported"),
        ("my_budget:Missing", {}, "`my_budget:Missing` cannot be imported"),
        ("my_budget:Budget", {"cals": 3}, "cannot be made with its settings"),
        ("my_budget:broken", {}, "cannot be made with its settings: RuntimeError: no such shop"),
        ("my_budget:nothing", {}, "makes a NoneType, which cannot be called"),
    ],
)
def test_what_cannot_be_had_is_said(
    directory: Path, use: str, settings: JsonObject, problem: str
) -> None:
    with pytest.raises(InterceptorError) as raised:
        made(use, directory, settings)
    assert problem in str(raised.value)


def test_an_unknown_name_is_answered_with_the_known_ones(directory: Path) -> None:
    with pytest.raises(InterceptorError, match=r"known are .*stamp"):
        made("stump", directory)
