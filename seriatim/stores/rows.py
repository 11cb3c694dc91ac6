"""An audit record as SQLite holds it, and back."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final, TypeAlias

from interceptors import AuditRecord

Row: TypeAlias = tuple[str | float | None, ...]
"""One row of the table `audit`, in the order of its columns."""

COLUMNS: Final = tuple(field.name for field in fields(AuditRecord))
_JSON: Final = frozenset({"missing", "inputs"})


def to_row(record: AuditRecord) -> Row:
    """Return the values to store."""
    return tuple(_stored(name, getattr(record, name)) for name in COLUMNS)


def from_row(row: Sequence[Any]) -> AuditRecord:
    """Return the record that was stored.

    Raises:
        ValueError: when a column that holds JSON holds something else.
    """
    values: dict[str, Any] = {
        name: json.loads(value) if name in _JSON else value
        for name, value in zip(COLUMNS, row, strict=True)
    }
    values["missing"] = tuple(values["missing"])
    return AuditRecord(**values)


def as_object(record: AuditRecord) -> dict[str, object]:
    """Return the record under its field names, in their order."""
    return {name: getattr(record, name) for name in COLUMNS}


def json_text(value: object) -> str:
    """Return `value` as JSON of ASCII characters only; what JSON does not know becomes a string."""
    try:
        return _STRICT.encode(value)
    except ValueError:  # a NaN or an infinity
        return json.dumps(json.loads(_LENIENT.encode(value), parse_constant=str))


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)


# Made once: `json.dumps` with arguments makes an encoder a call, which costs more than encoding.
_STRICT: Final = json.JSONEncoder(default=_plain, allow_nan=False)
_LENIENT: Final = json.JSONEncoder(default=_plain)


def storable(text: str) -> str:
    r"""Return `text` as SQLite can hold it: in UTF-8, which has no lone surrogates.

    They become `\udXXX`. Stored raw (`surrogatepass`), one hostile name would make the log
    unreadable to other tools.
    """
    return text.encode(errors="backslashreplace").decode()


def _stored(name: str, value: object) -> str | float | None:
    if name in _JSON:
        return json_text(value)
    match value:
        case None | float():
            return value
        case _:
            return storable(str(value))
