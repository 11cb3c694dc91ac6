from pathlib import Path

import pytest

from seriatim.runtime.servers.server_log import LARGEST, LONGEST_LINE, ServerLog, log_path


def test_lines_are_appended_and_the_last_one_is_known(tmp_path: Path) -> None:
    path = log_path(tmp_path, "mill")
    for chunks in ([b"on", b"e\ntw", b"o\n\n  \n"], [b"three"]):
        log = ServerLog(path, ())
        for chunk in chunks:
            log.write(chunk)
        log.close()
    assert path == tmp_path / ".seriatim/servers/mill.log"
    assert path.read_bytes() == b"one\ntwo\n\n  \nthree"


def test_the_last_line_is_the_last_that_is_not_blank(tmp_path: Path) -> None:
    log = ServerLog(log_path(tmp_path, "mill"), ())
    assert log.last_line == ""
    log.write(b"one\ntwo\n\n \n")
    assert log.last_line == "two"
    log.write(b"unfinish\xff")
    assert log.last_line == "unfinish\ufffd"
    log.close()


def test_a_secret_is_in_neither_the_file_nor_the_last_line(tmp_path: Path) -> None:
    path = log_path(tmp_path, "mill")
    log = ServerLog(path, ("s3cret-token", "short"))
    log.write(b"the token is s3cr")
    log.write(b"et-token, a short one\nand s3cret-token")
    assert log.last_line == "and [redacted]"
    log.close()
    assert path.read_text() == "the token is [redacted], a short one\nand [redacted]"


def test_a_flood_does_not_fill_the_disk(tmp_path: Path) -> None:
    path = log_path(tmp_path, "mill")
    log = ServerLog(path, ())
    for _ in range(LARGEST // LONGEST_LINE + 10):
        log.write(b"x" * (LONGEST_LINE + 1))
    log.write(b"\nlast\n")
    log.close()
    assert path.stat().st_size == LARGEST
    assert log.last_line == "last"


@pytest.mark.parametrize("server", ["../../up", "a/b", "..", "a b", "ä"])
def test_no_id_leaves_the_directory(tmp_path: Path, server: str) -> None:
    log = ServerLog(log_path(tmp_path, server), ())
    log.write(b"x\n")
    log.close()
    assert [p.read_bytes() for p in (tmp_path / ".seriatim/servers").iterdir()] == [b"x\n"]


def test_a_file_that_cannot_be_opened_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / ".seriatim").write_text("a file where the directory should be")
    log = ServerLog(log_path(tmp_path, "mill"), ())
    log.write(b"x\n")
    log.close()
    assert log.last_line == "x"
