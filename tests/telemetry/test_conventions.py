"""The names: fixed where people search for them, and ours nowhere but under our prefix."""

from telemetry import conventions

NAMES = {
    key: value
    for key, value in vars(conventions).items()
    if key.isupper() and isinstance(value, str)
}
VALUES = {
    "SCOPE", "INVOKE_AGENT", "CHAT", "EXECUTE_TOOL", "EXTENSION",
    "ALLOW", "DENY", "RECOVERED_FROM", "UNKNOWN",
}  # fmt: skip


def test_every_name_is_a_known_one_of_the_conventions_or_ours() -> None:
    for key, name in NAMES.items():
        if key not in VALUES:
            assert name.startswith(("gen_ai.", "seriatim.")) or name in (
                "error.type",
                "policy_decision",
            )


def test_no_two_names_are_the_same() -> None:
    assert len(set(NAMES.values())) == len(NAMES)


def test_the_names_that_people_search_for_are_fixed() -> None:
    assert conventions.POLICY_DECISION == "policy_decision"
    assert (conventions.ALLOW, conventions.DENY) == ("allow", "deny")
    assert conventions.REFUSAL_EVENT == "seriatim.refusal"


def test_no_metric_bears_its_unit_or_total_in_its_name() -> None:
    for name in NAMES.values():
        assert not name.endswith(("_total", ".total", "seconds", ".count"))
