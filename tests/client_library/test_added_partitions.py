"""Partitions that are added while a client runs: it looks for them again, as Kafka's clients do."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient, NewPartitions

from faircopy.client import BlockingClient, RequestFailed
from faircopy.client.brokers import Brokers
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.murmur2 import partition_for
from tests.broker_process import BrokerProcess
from tests.client_library.test_client import Seen, asynchronous
from tests.joint.asking import PARTITIONS, TOPIC

MORE = 2 * PARTITIONS
KEYS = [b"key %d" % number for number in range(50)]
WAIT_SECONDS = 30


def add_partitions(broker: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.create_partitions([NewPartitions(TOPIC, MORE)])[TOPIC].result(WAIT_SECONDS)


def write(client: BlockingClient) -> None:
    with client.begin() as transaction:
        for key in KEYS:
            transaction.send(TOPIC, b"value", key=key)


def written(client: BlockingClient) -> dict[bytes | None, set[int]]:
    """The partitions that each key is in."""
    found: dict[bytes | None, set[int]] = {}
    for (topic, partition), ends in client.cut([(TOPIC, number) for number in range(MORE)]).items():
        for record in client.read(topic, partition, *ends):
            found.setdefault(record.key, set()).add(partition)
    return found


def test_keys_go_where_other_clients_put_them(own_broker: BrokerProcess) -> None:
    with BlockingClient(own_broker.address, metadata_max_age_seconds=0) as client:
        write(client)
        add_partitions(own_broker)
        write(client)
        expected = {key: {partition_for(key, PARTITIONS), partition_for(key, MORE)} for key in KEYS}
        assert written(client) == expected


def test_what_is_known_holds_for_a_while(own_broker: BrokerProcess) -> None:
    with BlockingClient(own_broker.address) as client:
        assert client.partitions_of(TOPIC) == PARTITIONS
        add_partitions(own_broker)
        assert client.partitions_of(TOPIC) == PARTITIONS
        assert client.topic(TOPIC).partitions == MORE
        assert client.partitions_of(TOPIC) == MORE


@asynchronous
async def test_a_refusal_shows_that_what_is_known_is_out_of_date(
    own_broker: BrokerProcess, seen: Seen
) -> None:
    brokers = Brokers([own_broker.address], "test")
    assert await brokers.partitions_of(TOPIC, WAIT_SECONDS) == PARTITIONS
    add_partitions(own_broker)
    refusals = iter([ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])

    async def once() -> None:
        for code in refusals:
            raise RequestFailed(code, "refused by a test")

    await brokers.patiently(once, "asking", WAIT_SECONDS)
    assert await brokers.partitions_of(TOPIC, WAIT_SECONDS) == MORE
    await brokers.close()
