"""What a type checker accepts, and what it catches, of code that uses the chain."""

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def complaints(folder: str, cache: Path) -> set[tuple[str, int, str]]:
    """Return file, line and code of each of mypy's errors in a folder."""
    result = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--config-file", "", "--no-error-summary"),
            *("--cache-dir", str(cache), "--no-pretty", "--hide-error-context"),
            *map(str, sorted((HERE / folder).glob("*.py"))),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stderr == ""
    errors = re.findall(r"^(.+?):(\d+): error: .*\[([\w-]+)\]$", result.stdout, re.MULTILINE)
    return {(Path(path).name, int(line), code) for path, line, code in errors}


def expected(folder: str) -> set[tuple[str, int, str]]:
    return {
        (path.name, number, code)
        for path in (HERE / folder).glob("*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for code in re.findall(r"# expect: ([\w-]+)$", line)
    }


def test_good_code_is_accepted_and_bad_code_is_caught_where_it_is_bad(tmp_path: Path) -> None:
    assert complaints("accepted", tmp_path) == set()
    assert complaints("rejected", tmp_path) == expected("rejected")
