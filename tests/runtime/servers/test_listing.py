"""What a server lists, and in what it differs from what it listed before."""

from typing import Any

import pytest

from seriatim.runtime.servers.listing import Listing
from seriatim.runtime.servers.session import ListedTool


def listed(**tools: dict[str, Any]) -> dict[str, ListedTool]:
    return {
        name: ListedTool.model_validate({"name": name, "inputSchema": {}} | fields, by_name=False)
        for name, fields in tools.items()
    }


def test_what_is_listed_first_is_no_change() -> None:
    listing = Listing()
    assert listing.edition == 0
    assert listing.update(listed(a={})) == ()
    assert listing.edition == 1
    assert not listing.differs("a")
    assert not listing.differs("never")


def test_a_change_is_told_once_and_differs_until_it_is_undone() -> None:
    listing = Listing()
    listing.update(listed(a={"description": "one"}))
    changed = listed(a={"description": "two"})
    assert [change.what for change in listing.update(changed)] == ["has another description"]
    assert listing.update(changed) == ()
    assert listing.edition == 2
    assert listing.differs("a")
    listing.update(listed(a={"description": "one"}))
    assert not listing.differs("a")


@pytest.mark.parametrize("name", ["a", "b"])
def test_what_comes_or_goes_differs(name: str) -> None:
    listing = Listing()
    listing.update(listed(a={}))
    changes = listing.update(listed(b={}))
    assert [change.what for change in changes] == [
        "is not listed any more",
        "is listed again, or for the first time",
    ]
    assert listing.differs(name)


@pytest.mark.parametrize(
    ("before", "after"),
    [({"default": True}, {"default": 1}), ({"enum": [0]}, {"enum": [False]}), ({}, {"x": None})],
)
def test_schemas_differ_as_json_does(before: dict[str, Any], after: dict[str, Any]) -> None:
    listing = Listing()
    listing.update(listed(a={"inputSchema": before}))
    assert listing.update(listed(a={"inputSchema": after}))


def test_what_nobody_reads_is_no_change() -> None:
    listing = Listing()
    listing.update(listed(a={"_meta": {"build": 1}}))
    assert listing.update(listed(a={"_meta": {"build": 2}})) == ()
