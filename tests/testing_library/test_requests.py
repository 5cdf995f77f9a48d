"""Faults of requests other than commits, and faults that happen at once."""

from __future__ import annotations

import pytest

from faircopy.testing import Broker, OrderRefused
from tests.broker_process import eventually
from tests.clients import confluent_adapter
from tests.clients.adapter import Client, ClientFailed
from tests.testing_library.writer import VALUE, InBackground, each_library, open_transaction


def plain(library: Client, broker: Broker, topic: str) -> None:
    """Deliver one message outside of transactions."""
    producer = library.producer(broker.bootstrap_servers)
    try:
        producer.send(topic, VALUE)
        producer.flush()
    finally:
        producer.close()


# -- requests ------------------------------------------------------------------------------------------------


@each_library
@pytest.mark.parametrize(
    ("api", "error"),
    [
        ("Produce", "NOT_ENOUGH_REPLICAS"),
        ("AddPartitionsToTxn", "CONCURRENT_TRANSACTIONS"),
        ("InitProducerId", "COORDINATOR_LOAD_IN_PROGRESS"),
        ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE"),
        ("EndTxn", "COORDINATOR_NOT_AVAILABLE"),
    ],
)
def test_what_may_be_retried_is_retried(faulty: Broker, library: Client, api: str, error: str) -> None:
    topic = faulty.create_topic()
    faulty.refuse(api, error, times=2)
    with open_transaction(library, faulty, topic) as producer:
        producer.commit()
    assert faulty.requests(api) >= 3
    assert faulty.planned_faults() == []
    assert faulty.values(topic) == [VALUE]


@each_library
def test_what_is_refused_for_good_fails(faulty: Broker, library: Client) -> None:
    topic = faulty.create_topic()
    faulty.refuse("Produce", "TOPIC_AUTHORIZATION_FAILED", topic=topic)
    with pytest.raises(ClientFailed) as raised:
        plain(library, faulty, topic)
    assert raised.value.code == 29
    assert faulty.values(topic) == []


@pytest.mark.parametrize("takes_effect", [True, False])
def test_a_produce_without_an_answer_comes_again(faulty: Broker, takes_effect: bool) -> None:
    topic = faulty.create_topic()
    faulty.drop_connection("Produce", takes_effect=takes_effect, topic=topic)
    with open_transaction(confluent_adapter, faulty, topic) as producer:
        producer.commit()
    assert faulty.requests("Produce") == 2
    assert faulty.values(topic) == [VALUE], "the second one is known for the same"


@pytest.mark.parametrize("when", ["before", "before_ack", "after_ack"])
def test_a_broker_is_killed_by_a_produce(faulty: Broker, when: str) -> None:
    topic, starts = faulty.create_topic(), faulty.starts
    faulty.kill_at("Produce", when, topic=topic)  # type: ignore[arg-type]  # they are parameters
    with open_transaction(confluent_adapter, faulty, topic) as producer:
        eventually(lambda: faulty.starts == starts + 1)
        producer.commit()
    assert faulty.values(topic) == [VALUE]


def test_a_delayed_produce_keeps_its_place(faulty: Broker) -> None:
    topic = faulty.create_topic()
    faulty.delay("Produce", 0.05, takes_effect=False, skip=1, times=3)
    producer = confluent_adapter.producer(faulty.bootstrap_servers, idempotent=True)
    sent = [b"%d" % number for number in range(6)]
    for value in sent:
        producer.send(topic, value)
        producer.flush() if value == b"0" else None
    producer.flush()
    producer.close()
    assert faulty.values(topic) == sent


@each_library
def test_a_consumer_survives_an_error_of_its_fetch(faulty: Broker, library: Client) -> None:
    topic = faulty.create_topic()
    plain(library, faulty, topic)
    faulty.refuse("Fetch", "NOT_LEADER_OR_FOLLOWER", times=2)
    consumer = library.consumer(faulty.bootstrap_servers)
    consumer.assign({(topic, 0): 0})
    (got,) = eventually(lambda: consumer.poll(0.1))
    consumer.close()
    assert got.value == VALUE
    assert faulty.planned_faults() == []


def test_our_own_reading_is_not_counted_and_not_harmed(faulty: Broker) -> None:
    topic = faulty.create_topic()
    faulty.refuse("Fetch", "OFFSET_OUT_OF_RANGE", times=-1)
    faulty.refuse("Metadata", "LEADER_NOT_AVAILABLE", times=-1)
    assert faulty.values(topic) == []
    assert faulty.requests("Metadata") == faulty.requests("Fetch") == 0
    assert len(faulty.planned_faults()) == 2


def test_a_fault_that_can_not_be_is_refused(faulty: Broker) -> None:
    for call in (
        lambda: faulty.refuse("NoSuchApi", "NOT_COORDINATOR"),
        lambda: faulty.refuse("Fetch", "NO_SUCH_ERROR"),
        lambda: faulty.fence("nobody"),
        lambda: faulty.expire("nobody"),
        lambda: faulty.ask("no such order"),
        lambda: faulty.ask("fence", nothing=1),
    ):
        with pytest.raises(OrderRefused):
            call()
    assert faulty.planned_faults() == []


# -- at once -------------------------------------------------------------------------------------------------


@each_library
@pytest.mark.parametrize("fault", ["fence", "expire"])
def test_a_transaction_is_aborted(faulty: Broker, library: Client, fault: str) -> None:
    topic = faulty.create_topic()
    with open_transaction(library, faulty, topic) as producer:
        getattr(faulty, fault)(topic)
        with pytest.raises(ClientFailed):
            producer.commit()
    assert faulty.values(topic) == []


def test_all_transactions_are_aborted(faulty: Broker) -> None:
    topic = faulty.create_topic()
    faulty.expire()
    with (
        open_transaction(confluent_adapter, faulty, topic, "left"),
        open_transaction(confluent_adapter, faulty, topic, "right"),
    ):
        assert sorted(faulty.expire()) == ["left", "right"]
        assert faulty.expire() == []


@each_library
def test_a_frozen_broker_answers_nothing(faulty: Broker, library: Client) -> None:
    topic = faulty.create_topic()
    with open_transaction(library, faulty, topic) as producer:
        with faulty.frozen():
            committing = InBackground(producer.commit)
            with pytest.raises(OrderRefused, match="frozen"):
                faulty.requests("EndTxn")
            assert committing.is_under_way
        assert committing.result() is None
    assert faulty.values(topic) == [VALUE]


@each_library
def test_a_full_disk_takes_no_messages_until_there_is_space(faulty: Broker, library: Client) -> None:
    topic = faulty.create_topic()
    with open_transaction(library, faulty, topic) as open_before:
        with faulty.full_disk():
            sending = InBackground(lambda: plain(library, faulty, topic))
            eventually(lambda: faulty.requests("Produce") >= 3)
            with pytest.raises(OrderRefused, match="disk"):
                faulty.create_topic()
            assert sending.is_under_way
            open_before.commit()
            assert faulty.values(topic) == [VALUE], "what was accepted can be committed"
        assert sending.result() is None
    assert faulty.values(topic) == [VALUE, VALUE]


def test_a_broker_that_was_killed_stays_down_until_it_is_started(faulty: Broker) -> None:
    topic = faulty.create_topic()
    plain(confluent_adapter, faulty, topic)
    faulty.kill()
    assert faulty.pid is None
    with pytest.raises(OrderRefused, match="start it first"):
        faulty.requests("Produce")
    faulty.start()
    assert faulty.values(topic) == [VALUE]


def test_a_restart_keeps_what_was_acknowledged_and_forgets_faults(faulty: Broker) -> None:
    topic, address = faulty.create_topic(), faulty.bootstrap_servers
    plain(confluent_adapter, faulty, topic)
    faulty.fail_next_commit()
    faulty.restart()
    assert faulty.planned_faults() == []
    assert faulty.bootstrap_servers == address
    assert faulty.values(topic) == [VALUE]


def test_clearing_brings_a_broker_back(faulty: Broker) -> None:
    faulty.kill()
    faulty.clear_faults()
    faulty.ask("freeze")
    faulty.clear_faults()
    faulty.ask("fill_disk")
    faulty.clear_faults()
    assert faulty.values(faulty.create_topic()) == []
