"""What the commands that read the audit log share: finding it, and saying why it cannot be read.

Needs no topology that is right, or even readable.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seriatim.cli.lines import escaped
from seriatim.cli.voice import FAILED, WRONG_USAGE, for_a_reader, say, stop
from seriatim.stores.audit_log import AuditReader
from seriatim.stores.errors import AuditStoreError, NoAuditLogError, UnknownPlaceError
from seriatim.stores.places import chosen_place
from seriatim.topology.fields import Fields
from seriatim.topology.source import read


@contextmanager
def log_of(path: Path, audit: str) -> Iterator[Path]:
    """Give where the log of the workspace at `path` is; leaves when it cannot be read there.

    Ends quietly when the reader of stdout has seen enough.

    Args:
        audit: what the command line says of the place, or `""`.
    """
    if not path.exists():
        stop(
            f"there is no `{path}`",
            hint="give a workspace directory, or a file that holds a topology",
            code=WRONG_USAGE,
        )
    try:
        with for_a_reader():
            yield _place(path, audit)
    except NoAuditLogError as error:
        stop(
            error.message,
            hint=f"`seriatim run {path} --input TEXT` makes one; `--audit` names another place",
            code=FAILED,
        )
    except UnknownPlaceError as error:
        stop(error.message, hint=error.hint, code=WRONG_USAGE)
    except AuditStoreError as error:
        stop(error.message, hint=error.hint, code=FAILED)


def chosen_run(reader: AuditReader, run: str) -> str:
    """Return the run that was asked for, or the newest; leaves when the log does not have it.

    Raises:
        NoAuditLogError: when it has none.
    """
    newest = reader.newest_run()
    if not newest:
        raise NoAuditLogError("nothing has been recorded yet")
    if run and not reader.has_run(run):
        stop(
            f"the audit log has no run `{escaped(run)}`",
            hint=f"the newest is `{escaped(newest[0])}`; without `--run` it is printed",
            code=FAILED,
        )
    return run or newest[0]


def _place(path: Path, audit: str) -> Path:
    """Return where the log of the workspace at `path` is.

    Raises:
        UnknownPlaceError: when the place that was named is none.
    """
    directory = path if path.is_dir() else path.parent
    # As `with_environment` has it, without its say on variables that do not concern the log.
    setting = os.environ.get("SERIATIM_AUDIT") or _setting(path)
    return chosen_place(audit, setting, directory).path


def _setting(path: Path) -> str:
    """Return what the workspace's own settings say of the log's place, or `""`.

    Only this one word is read, so that a mistake anywhere else does not hide the log.
    """
    beside = [path / "seriatim.yaml", path / "seriatim.yml"] if path.is_dir() else [path]
    for file in beside:
        if file.is_file():
            document = read(file, str(file))
            if not document.whole:
                say(f"cannot read `{file}`; looking for the log in its usual place")
            fields = Fields(document.root, [])
            return (fields if path.is_dir() else fields.section("seriatim")).text("audit")
    return ""
