"""Batches that are larger than their topic takes: they are divided, as Kafka's producer does it."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from faircopy.client import BlockingClient, RequestFailed
from tests.broker_process import BrokerProcess

NARROW = "narrow"
BYTES_MAX = 2_000
WAIT_SECONDS = 30


@pytest.fixture
def broker(own_broker: BrokerProcess) -> BrokerProcess:
    """A broker with a topic that takes small batches only."""
    make_narrow(own_broker)
    return own_broker


def make_narrow(broker: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    topic = NewTopic(NARROW, 1, config={"max.message.bytes": str(BYTES_MAX)})
    admin.create_topics([topic])[NARROW].result(WAIT_SECONDS)


def values_of(client: BlockingClient) -> list[bytes]:
    ((place, ends),) = client.cut([(NARROW, 0)]).items()
    return [record.value or b"" for record in client.read(*place, *ends)]


def test_they_are_divided(broker: BrokerProcess) -> None:
    values = [b"%d" % number * (number % 50 + 1) for number in range(1_000)]
    with BlockingClient(broker.address) as client:
        with client.begin() as transaction:
            for value in values:
                transaction.send(NARROW, value, headers=[("h", b"x")])
        assert values_of(client) == values


def test_a_record_that_is_too_large_is_an_error(broker: BrokerProcess) -> None:
    reason = r"one record: raise max\.message\.bytes of the topic(?s:.*)MESSAGE_TOO_LARGE"
    with BlockingClient(broker.address) as client:
        with pytest.raises(RequestFailed, match=reason), client.begin() as transaction:
            for size in (10, BYTES_MAX, 10):
                transaction.send(NARROW, bytes(size))
        assert values_of(client) == []
