from pathlib import Path

import pytest

from seriatim.stores.errors import UnknownPlaceError
from seriatim.stores.places import SqlitePlace, audit_place, chosen_place, has_run, open_audit
from tests.support.records import COMPLETED

WORKSPACE = Path("/srv/workspace")


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("", "/srv/workspace/.seriatim/audit.sqlite3"),
        ("log.db", "/srv/workspace/log.db"),
        ("/var/log/audit.db", "/var/log/audit.db"),
        ("sqlite:///logs/audit.db", "/srv/workspace/logs/audit.db"),
        ("sqlite:////var/log/audit.db", "/var/log/audit.db"),
        ("with space & 100%?.db", "/srv/workspace/with space & 100%?.db"),
    ],
)
def test_a_place_is_a_path_or_an_sqlite_url(url: str, path: str) -> None:
    assert audit_place(url, WORKSPACE) == SqlitePlace(Path(path))


@pytest.mark.parametrize(
    "url", ["postgresql://me:hidden@db/audit", "sqlite://audit.db", "sqlite:///", ":memory:"]
)
def test_another_place_is_refused_with_what_is_supported(url: str) -> None:
    with pytest.raises(UnknownPlaceError) as raised:
        audit_place(url, WORKSPACE)
    assert raised.value.hint == "give the path of a file, or `sqlite:///PATH`"
    assert "hidden" not in raised.value.message


def test_the_command_line_wins_over_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert chosen_place("a.db", "b.db", WORKSPACE) == SqlitePlace(Path.cwd() / "a.db")
    assert chosen_place("", "b.db", WORKSPACE) == SqlitePlace(WORKSPACE / "b.db")
    assert chosen_place("", "", WORKSPACE) == audit_place("", WORKSPACE)


@pytest.mark.anyio
async def test_what_is_written_to_a_place_is_found_there(tmp_path: Path) -> None:
    place = audit_place("", tmp_path)
    assert not has_run(place, "run-1")
    async with open_audit(place) as sink:
        await sink.write(COMPLETED)
    assert has_run(place, "run-1")
    assert not has_run(place, "run-2")
