"""Users' interceptors: found by name, made with their settings, and isolated."""

import importlib
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from interceptors import Interceptor, IsolatedInterceptor, Redactor
from interceptors.texts import clause
from seriatim.topology.models import InterceptorSetting

GROUP: Final = "seriatim.interceptors"
"""The entry point group under which a distribution offers interceptors."""


class InterceptorError(Exception):
    """A user's interceptor cannot be had; the message says which, why, and what to do."""


def make_interceptor(
    setting: InterceptorSetting, directory: Path, redactor: Redactor
) -> IsolatedInterceptor:
    """Return a fresh interceptor as a setting asks for it, isolated.

    Args:
        directory: the workspace's directory; `module:name` is looked for there too.

    Raises:
        InterceptorError: when it cannot be found, imported, or made with its settings.
    """
    factory = _find(setting.use, directory, redactor)
    try:
        interceptor: Interceptor = factory(**setting.settings)  # type: ignore[operator]  # a user's object: called to find out
    except Exception as error:  # a user's code may raise anything
        problem = clause(error, redactor.text)
        raise InterceptorError(
            f"interceptor `{setting.use}` cannot be made with its settings: {problem}"
        ) from error
    if not callable(interceptor):
        raise InterceptorError(
            f"interceptor `{setting.use}` makes a {type(interceptor).__name__}, "
            "which cannot be called with `(call, proceed)`"
        )
    return IsolatedInterceptor(setting.use, interceptor, setting.timeout, redactor)


def _find(use: str, directory: Path, redactor: Redactor) -> object:
    module, colon, name = use.partition(":")
    try:
        if colon:
            return _imported(module, name, directory)
        for point in entry_points(group=GROUP, name=use):
            return point.load()
    except Exception as error:  # importing runs a user's code
        problem = clause(error, redactor.text)
        raise InterceptorError(f"interceptor `{use}` cannot be imported: {problem}") from error
    known = sorted(point.name for point in entry_points(group=GROUP))
    hint = f"known are {', '.join(known)}" if known else "none is installed; write `module:name`"
    raise InterceptorError(f"there is no interceptor `{use}` in the group `{GROUP}` ({hint})")


def _imported(module: str, name: str, directory: Path) -> object:
    # The workspace is where a reviewer expects the code that a topology names. Behind all else, so
    # that no file in it can stand in for an installed package.
    if str(directory) not in sys.path:
        sys.path.append(str(directory))
    found: object = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found
