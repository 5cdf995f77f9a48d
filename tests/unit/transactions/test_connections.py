"""Which requests count as late: those of a connection that was given up, but none of a pooling client."""

from __future__ import annotations

import random

import pytest

from faircopy.transactions.connections import (
    CONNECTIONS_MAX,
    IN_FLIGHT_MAX,
    Connections,
    LateRequest,
    RequestKind,
    Sent,
)

OLD, NEW, NEWEST = 3, 8, 9


def late(connections: Connections, kind: RequestKind, sent: Sent) -> bool:
    try:
        connections.admit(kind, sent)
    except LateRequest:
        return True
    return False


@pytest.mark.parametrize("late_kind", RequestKind)
@pytest.mark.parametrize("other_kind", RequestKind)
def test_a_connection_is_replaced_for_all_that_it_carried(
    late_kind: RequestKind, other_kind: RequestKind
) -> None:
    """Also if the late kind of request was not heard on the new connection so far."""
    connections = Connections()
    connections.admit(late_kind, Sent(OLD, 1, "a"))
    connections.admit(other_kind, Sent(OLD, 2, "b"))
    connections.admit(other_kind, Sent(NEW, 1, "b"))
    for number in range(IN_FLIGHT_MAX[late_kind]):
        assert late(connections, late_kind, Sent(OLD, 3 + number, number))
    assert not late(connections, late_kind, Sent(NEW, 2, "c"))


def test_a_client_with_a_connection_for_each_kind_is_never_refused() -> None:
    """As librdkafka: its Produce connection is older than the coordinator's, and stays when that changes."""
    connections = Connections()
    for number in range(20):
        assert not late(connections, RequestKind.TRANSACTION, Sent(NEW + number, 1, number))
        assert not late(connections, RequestKind.PRODUCE, Sent(OLD, number, number))


def test_a_request_that_is_sent_again_shows_that_somebody_is_there() -> None:
    connections = Connections()
    connections.admit(RequestKind.TRANSACTION, Sent(NEW, 1, "a"))
    assert late(connections, RequestKind.TRANSACTION, Sent(OLD, 1, "b"))
    assert late(connections, RequestKind.TRANSACTION, Sent(OLD, 1, "b")), (
        "repeated by the network, not by the client"
    )
    assert late(connections, RequestKind.TRANSACTION, Sent(OLD, 2, "c")), "it may have been on its way"
    assert not late(connections, RequestKind.TRANSACTION, Sent(OLD, 3, "c"))
    assert not late(connections, RequestKind.TRANSACTION, Sent(OLD, 4, "d"))
    assert not late(connections, RequestKind.TRANSACTION, Sent(NEW, 2, "e"))


def test_what_was_live_may_be_replaced_again() -> None:
    connections = Connections()
    connections.admit(RequestKind.TRANSACTION, Sent(NEW, 1, "a"))
    assert late(connections, RequestKind.TRANSACTION, Sent(OLD, 1, "b"))
    assert not late(connections, RequestKind.TRANSACTION, Sent(OLD, 2, "b"))
    assert not late(connections, RequestKind.TRANSACTION, Sent(NEWEST, 1, "b"))
    assert late(connections, RequestKind.TRANSACTION, Sent(OLD, 3, "b"))
    assert late(connections, RequestKind.TRANSACTION, Sent(NEW, 3, "b"))


def test_more_than_can_be_on_their_way_show_that_somebody_is_there() -> None:
    connections = Connections()
    connections.admit(RequestKind.PRODUCE, Sent(NEW, 1, "a"))
    for number in range(5):
        assert late(connections, RequestKind.PRODUCE, Sent(OLD, number, number))
        assert late(connections, RequestKind.PRODUCE, Sent(OLD, number, number))
    assert not late(connections, RequestKind.PRODUCE, Sent(OLD, 5, 5))


@pytest.mark.parametrize("seed", range(20))
def test_a_pool_is_refused_a_few_times(seed: int) -> None:
    """Whatever connection of the pool carries which try."""
    chosen, connections = random.Random(seed), Connections()
    pool, correlation_ids, refusals = list(range(10, 15)), dict.fromkeys(range(10, 15), 0), 0
    for number in range(300):
        kind = chosen.choice(list(RequestKind))
        while True:
            connection = chosen.choice(pool)
            correlation_ids[connection] += 1
            if not late(connections, kind, Sent(connection, correlation_ids[connection], number)):
                break
            refusals += 1
    assert refusals <= sum(IN_FLIGHT_MAX.values()) * (len(pool) - 1) * 2


def test_so_many_connections_are_remembered_and_no_more() -> None:
    connections = Connections()
    connections.admit(RequestKind.PRODUCE, Sent(1, 1, "a"))
    for number in range(2, 10 * CONNECTIONS_MAX):
        assert not late(connections, RequestKind.TRANSACTION, Sent(number, 1, number))
    assert len(connections._carried) == CONNECTIONS_MAX
    assert late(connections, RequestKind.TRANSACTION, Sent(3, 2, "b")), (
        "forgotten, and older than the newest all the same"
    )
    assert not late(connections, RequestKind.PRODUCE, Sent(1, 2, "c"))
