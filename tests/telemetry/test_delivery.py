"""The account of what has arrived, and the line about what has not."""

from hypothesis import given
from hypothesis import strategies as st

from telemetry.delivery import ItemDelivery, MetricDelivery, counted, undelivered


@given(room=st.integers(1, 50), batches=st.lists(st.tuples(st.integers(0, 80), st.booleans())))
def test_every_span_is_accounted_for(room: int, batches: list[tuple[int, bool]]) -> None:
    delivery = ItemDelivery(room)
    ended = arrived = 0
    for ending, reachable in batches:
        admitted = sum(delivery.admit() for _ in range(ending))
        ended += ending
        assert admitted == min(ending, room)
        assert delivery.missing() == ended - arrived
        delivery.sent(admitted)
        assert delivery.missing() == ended - arrived
        delivery.settled(admitted, arrived=reachable)
        arrived += admitted if reachable else 0
    assert delivery.lost() == delivery.missing() == ended - arrived


def test_an_export_of_metrics_that_has_not_ended_is_missing() -> None:
    delivery = MetricDelivery()
    assert not delivery.missing()
    delivery.sent()
    assert delivery.missing()
    delivery.settled(arrived=True)
    assert not delivery.missing()


def test_nothing_is_said_when_all_has_arrived() -> None:
    assert undelivered([]) == []


def test_one_line_says_what_is_missing_and_where() -> None:
    assert undelivered([(counted(1, "span"), "a:1")]) == [
        "telemetry: 1 span could not be delivered to a:1"
    ]
    assert undelivered([("5 spans", "a:1"), ("the latest metrics", "a:1")]) == [
        "telemetry: 5 spans and the latest metrics could not be delivered to a:1"
    ]
    assert undelivered([("5 spans", "a:1"), ("1 log event", "a:1"), ("the rest", "a:1")]) == [
        "telemetry: 5 spans, 1 log event and the rest could not be delivered to a:1"
    ]
    assert undelivered([(counted(5, "span"), "a:1"), ("the latest metrics", "b:2")]) == [
        "telemetry: 5 spans could not be delivered to a:1, "
        "and the latest metrics could not be delivered to b:2"
    ]
