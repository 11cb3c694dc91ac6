"""The rules, replayed over the recorded calls of real agents.

The recordings are not part of the project; where they are absent, so is this test. How they are
read, and the numbers, are those of an analysis that was made without this code: go through the
calls in order; a call is refused when a prerequisite has no earlier call without an error in the
same run; what was recorded counts, whether or not it would have been refused.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from interceptors import Rules, SkillId, SkillState, Standing
from tests.support.calls import requires

RECORDINGS: Final = Path(__file__).parents[3] / "shared" / "data" / "tau_sequences.jsonl"

_FLIGHT: Final = ["get_reservation_details"]
_ORDER: Final = ["get_order_details"]
_PERSON: Final = ["get_user_details"]
STATED: Final = {
    "airline": {
        "cancel_reservation": _FLIGHT,
        "update_reservation_flights": _FLIGHT,
        "update_reservation_baggages": _FLIGHT,
        "update_reservation_passengers": _FLIGHT,
    },
    "retail": {
        "cancel_pending_order": _ORDER,
        "modify_pending_order_address": _ORDER,
        "modify_pending_order_items": _ORDER,
        "modify_pending_order_payment": _ORDER,
        "return_delivered_order_items": _ORDER,
        "exchange_delivered_order_items": _ORDER,
    },
}
IMPLIED: Final = {
    "airline": {
        "book_reservation": _PERSON,
        "update_reservation_flights": _PERSON,
        "update_reservation_baggages": _PERSON,
        "cancel_reservation": _PERSON,
        "send_certificate": ["get_user_details", "get_reservation_details"],
    },
    "retail": {
        "modify_pending_order_items": ["get_product_details", "get_user_details"],
        "exchange_delivered_order_items": ["get_product_details", "get_user_details"],
        "modify_pending_order_payment": _PERSON,
        "return_delivered_order_items": _PERSON,
        "modify_user_address": _PERSON,
    },
}
PLAIN: Final = {
    domain: {
        skill: [*STATED[domain].get(skill, ()), *IMPLIED[domain].get(skill, ())]
        for skill in STATED[domain] | IMPLIED[domain]
    }
    for domain in STATED
}


def runs(domain: str, source: str) -> Iterator[list[dict[str, Any]]]:
    with RECORDINGS.open(encoding="utf-8") as lines:
        for line in lines:
            run = json.loads(line)
            if (run["domain"], run["source"]) == (domain, source):
                yield run["calls"]


def replayed(rules: Rules, calls: list[dict[str, Any]]) -> tuple[int, int]:
    """Return how many calls would have been refused, and how many were guarded."""
    states: dict[SkillId, SkillState] = {}
    refused = guarded = 0
    for call in calls:
        skill = SkillId(call["n"])
        guarded += skill in rules.requires
        refused += bool(rules.unmet(skill, Standing(states)))
        if not call["e"]:
            states[skill] = SkillState.COMPLETED
    return refused, guarded


@pytest.mark.skipif(not RECORDINGS.exists(), reason="the recordings are not here")
@pytest.mark.parametrize(
    ("domain", "source", "stated", "plain"),
    [
        ("airline", "sierra-tau-gpt4o", (2, 189), (54, 250)),
        ("airline", "tau2-toolorchestra", (0, 50), (4, 66)),
        ("retail", "agentverify-advice", (0, 130), (5, 138)),
        ("retail", "agentverify-assert-pre", (0, 119), (3, 127)),
        ("retail", "agentverify-assert-prepost", (1, 80), (3, 85)),
        ("retail", "agentverify-toolcalling", (0, 141), (7, 148)),
        ("retail", "tau2-toolorchestra", (0, 161), (8, 170)),
    ],
)
def test_the_rules_refuse_what_an_independent_analysis_found(
    domain: str, source: str, stated: tuple[int, int], plain: tuple[int, int]
) -> None:
    for written, expected in ((STATED, stated), (PLAIN, plain)):
        rules = Rules(requires(written[domain]))
        verdicts = [replayed(rules, calls) for calls in runs(domain, source)]
        assert tuple(map(sum, zip(*verdicts, strict=True))) == expected
