"""Where a workspace's parts lie: a directory in SwarmKit's layout, or one file with all inline."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from seriatim.topology.fields import Fields
from seriatim.topology.nodes import MapNode
from seriatim.topology.problems import Problem, error, suggestion, warning
from seriatim.topology.source import Document, read

_WANTED: Final = "give a workspace directory, or a topology file"
_FOLDERS: Final = ("topologies", "archetypes", "skills")
_SUFFIXES: Final = (".yaml", ".yml")


class NothingToValidateError(Exception):
    """The path does not exist, or holds no workspace.

    Attributes:
        hint: what a workspace is.
    """

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint: Final = hint


@final
@dataclass(frozen=True, slots=True)
class NamedTopology:
    """A topology, and the name that it has unless it says otherwise."""

    fields: Fields
    name: str


@final
@dataclass(frozen=True, slots=True)
class Parts:
    """The mappings of one kind, and whether these are all that were written."""

    sections: tuple[Fields, ...]
    whole: bool


@final
@dataclass(frozen=True, slots=True)
class Layout:
    """The parts of a workspace, not yet understood.

    Attributes:
        directory: absolute.
        top: where the workspace itself is described, its servers included.
        whole: whether `top` is all that was written there.
        files: how many were read.
        problems: where everything that is wrong is noted.
    """

    directory: Path
    name: str
    top: Fields
    whole: bool
    skills: Parts
    archetypes: Parts
    topologies: tuple[NamedTopology, ...]
    settings: Fields
    files: int
    problems: list[Problem]


def find(path: Path) -> Layout:
    """Return the parts of the workspace at `path`.

    Raises:
        NothingToValidateError: when there is no workspace.
    """
    try:
        if path.is_dir():
            return _directory(path)
        if path.is_file():
            return _file(path)
    except OSError as fault:
        reason = (fault.strerror or type(fault).__name__).lower()
        raise NothingToValidateError(f"cannot read `{path}`: {reason}", _WANTED) from fault
    raise NothingToValidateError(f"there is no file or directory `{path}`", _WANTED)


def _directory(path: Path) -> Layout:
    manifests = _present(path, "workspace")
    if not manifests:
        raise NothingToValidateError(
            f"`{path}` holds no `workspace.yaml`",
            "a workspace is a directory with `workspace.yaml`, `topologies/`, `archetypes/` and "
            "`skills/`; if one file holds all, give that file",
        )
    problems: list[Problem] = []
    top = _of_kind("Workspace", read(manifests[0], manifests[0].name), problems)
    skills = _read_all(path, "skills", "Skill", problems)
    archetypes = _read_all(path, "archetypes", "Archetype", problems)
    topologies = _read_all(path, "topologies", "Topology", problems)
    settings = [read(file, file.name) for file in _present(path, "seriatim")[:1]]
    for document in settings:
        problems += document.problems
    documents = [top, *skills, *archetypes, *topologies, *settings]
    if not topologies:
        message = "the workspace has no topology"
        hint = "put a topology into `topologies/`"
        problems.append(warning("workspace.no-topology", message, top.root.at, hint))
    for document in [top, *topologies]:
        _refuse_settings(Fields(document.root, problems))
    roots = [*(document.root for document in settings), MapNode(top.root.at, {})]
    return Layout(
        directory=path.absolute(),
        name=path.absolute().name,
        top=Fields(top.root, problems),
        whole=top.whole,
        skills=_parts(skills, problems),
        archetypes=_parts(archetypes, problems),
        topologies=tuple(
            NamedTopology(Fields(document.root, problems), Path(document.path).stem)
            for document in topologies
            if document.whole
        ),
        settings=Fields(roots[0], problems),
        files=len(documents),
        problems=problems,
    )


def _refuse_settings(fields: Fields) -> None:
    """Note our settings in a file of SwarmKit's, where they would be passed over."""
    for entry in fields.entries("seriatim"):
        message = "the settings under `seriatim` do not count here"
        hint = "move them to a file `seriatim.yaml` beside `workspace.yaml`"
        fields.problems.append(error("settings.misplaced", message, entry.key.at, hint))


def _present(directory: Path, stem: str) -> list[Path]:
    files = [directory / f"{stem}{suffix}" for suffix in _SUFFIXES]
    return [file for file in files if file.is_file()]


def _file(path: Path) -> Layout:
    workspace = path.absolute().parent.parent
    if path.absolute().parent.name in _FOLDERS and _present(workspace, "workspace"):
        raise NothingToValidateError(
            f"`{path}` is only a part of a workspace", f"give the whole: `{workspace}`"
        )
    document = read(path, path.name)
    fields = Fields(document.root, [])
    if document.whole and not fields.entries("agents") and fields.any_text("kind") != "Topology":
        raise NothingToValidateError(
            f"`{path}` holds no topology", "a topology file has `agents:` with a `root:` in it"
        )
    problems: list[Problem] = []
    document = _of_kind("Topology", document, problems)
    fields = Fields(document.root, problems)
    return Layout(
        directory=path.absolute().parent,
        name=path.stem,
        top=fields,
        whole=document.whole,
        skills=_inline(fields, "skills"),
        archetypes=_inline(fields, "archetypes"),
        topologies=(NamedTopology(fields, path.stem),) if document.whole else (),
        settings=fields.section("seriatim"),
        files=1,
        problems=problems,
    )


def _read_all(directory: Path, folder: str, kind: str, problems: list[Problem]) -> list[Document]:
    """Read what a folder of the workspace holds, however deep, in the order of the names."""
    files = sorted(
        file
        for file in (directory / folder).rglob("*")
        if file.suffix in _SUFFIXES and not file.name.startswith(".") and _may_be_read(file)
    )
    return [
        _of_kind(kind, read(file, file.relative_to(directory).as_posix()), problems)
        for file in files
    ]


def _may_be_read(file: Path) -> bool:
    """Whether it is a file, or a link that leads nowhere, of which the author should know."""
    return file.is_file() or (file.is_symlink() and not file.exists())


def _of_kind(kind: str, document: Document, problems: list[Problem]) -> Document:
    """Return the document; without its content when that is of another kind."""
    problems += document.problems
    for entry in Fields(document.root, []).entries("kind"):
        written = Fields(document.root, []).any_text("kind")
        if written != kind:
            message = f"a file here must be of kind `{kind}`, and this is `{written}`"
            hint = suggestion(written, [kind], "move the file to the folder of its kind")
            at = entry.value.at
            problems.append(error("workspace.kind-mismatch", message, at, hint))
            return Document(document.path, document.root, whole=False, problems=())
    if document.blank:
        message = "the file is empty"
        hint = f"write the {kind.lower()} into it, or delete it"
        problems.append(error("workspace.malformed", message, document.root.at, hint))
        return Document(document.path, document.root, whole=False, problems=())
    return document


def _parts(documents: list[Document], problems: list[Problem]) -> Parts:
    whole = [document for document in documents if document.whole]
    sections = tuple(Fields(document.root, problems) for document in whole)
    return Parts(sections, whole=len(whole) == len(documents))


def _inline(fields: Fields, name: str) -> Parts:
    noted = len(fields.problems)
    sections = fields.sections(name)
    return Parts(sections, whole=len(fields.problems) == noted)
