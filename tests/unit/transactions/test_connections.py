"""Which requests count as late: those of a connection that was given up, but none of a pooling client."""

from __future__ import annotations

import random

import pytest

from faircopy.transactions.connections import (
    CONNECTIONS_MAX,
    IN_FLIGHT_MAX,
    PRODUCERS_MAX,
    Connections,
    LateRequest,
    ProducerConnections,
    RequestKind,
    Sent,
)

OLD, NEW, NEWEST = 3, 8, 9


PRODUCER, OTHER = (7, 0), (8, 0)
TRANSACTION, PRODUCE = RequestKind.TRANSACTION, RequestKind.PRODUCE


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
    assert len(connections.carried) == CONNECTIONS_MAX
    assert late(connections, RequestKind.TRANSACTION, Sent(3, 2, "b")), (
        "forgotten, and older than the newest all the same"
    )
    assert not late(connections, RequestKind.PRODUCE, Sent(1, 2, "c"))


# -- connections that are over -------------------------------------------------------------------------------


def refused(known: ProducerConnections, producer: tuple[int, int], kind: RequestKind, sent: Sent) -> bool:
    try:
        known.admit(producer, kind, sent)
    except LateRequest:
        return True
    return False


def test_nothing_is_kept_of_producers_whose_connections_are_over() -> None:
    """Flink takes a new id for each transaction. Some it never uses."""
    known = ProducerConnections()
    for number in range(1_000):
        known.begin((number, 0), number)
        if number % 2:
            assert not refused(known, (number, 0), TRANSACTION, Sent(number, 1, "a"))
            assert not refused(known, (number, 0), PRODUCE, Sent(number + 1_000, 1, "b"))
            known.over(number + 1_000)
        known.over(number)
    assert not known._connections
    assert not known._producers


@pytest.mark.parametrize("late_kind", RequestKind)
def test_an_older_open_connection_stays_replaced(late_kind: RequestKind) -> None:
    """Although the newer ones are over: what is stuck on it would come in the middle of a later transaction.
    Also if nothing of the producer has come over it so far.
    """
    known = ProducerConnections()
    assert not refused(known, PRODUCER, late_kind, Sent(NEW, 1, "a"))
    known.over(NEW)
    assert refused(known, PRODUCER, late_kind, Sent(OLD, 1, "b"))
    assert not refused(known, PRODUCER, late_kind, Sent(NEWEST, 1, "c"))
    assert refused(known, PRODUCER, late_kind, Sent(OLD, 2, "d"))


@pytest.mark.parametrize("late_kind", RequestKind)
def test_an_older_open_connection_that_is_known_stays_replaced(late_kind: RequestKind) -> None:
    known = ProducerConnections()
    for connection in (OLD, NEW):
        assert not refused(known, PRODUCER, late_kind, Sent(connection, 1, connection))
    known.over(NEW)
    assert refused(known, PRODUCER, late_kind, Sent(OLD, 2, "b"))


def test_a_new_instance_may_use_an_old_connection() -> None:
    """Whatever else is over: nothing of it can be late."""
    known = ProducerConnections()
    assert not refused(known, OTHER, TRANSACTION, Sent(NEW, 1, "a"))
    known.over(NEW)
    known.begin(PRODUCER, OLD)
    assert not refused(known, PRODUCER, TRANSACTION, Sent(OLD, 1, "b"))
    assert not refused(known, PRODUCER, PRODUCE, Sent(OLD - 1, 1, "c")), "as librdkafka"


def test_a_live_client_of_which_nothing_was_kept_is_asked_once_to_send_again() -> None:
    known = ProducerConnections()
    assert not refused(known, OTHER, TRANSACTION, Sent(NEW, 1, "a"))
    known.over(NEW)
    assert refused(known, PRODUCER, TRANSACTION, Sent(OLD, 1, "b"))
    for number in range(2, 10):
        assert not refused(known, PRODUCER, TRANSACTION, Sent(OLD, number, "b"))


def test_so_many_producers_of_a_connection_are_remembered_and_no_more() -> None:
    """Of the others, the older connections stay replaced."""
    known = ProducerConnections()
    producers = [(number, 0) for number in range(10 * PRODUCERS_MAX)]
    for producer in producers:
        assert not refused(known, producer, TRANSACTION, Sent(NEW, producer[0], "a"))
    assert len(known._connections) == len(known._producers[NEW]) == PRODUCERS_MAX
    for producer in (producers[0], producers[-1]):
        assert refused(known, producer, TRANSACTION, Sent(OLD, 1, "b"))
        assert not refused(known, producer, TRANSACTION, Sent(NEW, 20_000, "c"))


def test_a_fenced_instance_leaves_nothing_behind() -> None:
    known = ProducerConnections()
    known.begin(PRODUCER, 0)
    for number in range(1, 2 * CONNECTIONS_MAX):
        assert not refused(known, PRODUCER, TRANSACTION, Sent(number, 1, number))
    known.forget(PRODUCER)
    assert not known._connections
    assert not known._producers
    for number in range(2 * CONNECTIONS_MAX):
        known.over(number)
