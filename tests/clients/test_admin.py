"""The admin clients of two libraries against a real broker."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from kafka.admin import KafkaAdminClient
from kafka.admin import NewTopic as KafkaNewTopic
from kafka.errors import TopicAlreadyExistsError

from tests.broker_process import BrokerProcess, eventually

SECONDS = 60


@pytest.fixture
def admin(broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.address})


@pytest.fixture
def name(admin: AdminClient) -> Iterator[str]:
    """A topic of two partitions."""
    made = f"admin-{uuid.uuid4().hex[:8]}"
    admin.create_topics([NewTopic(made, 2, config={"retention.ms": "5000000"})])[made].result(SECONDS)
    yield made
    admin.delete_topics([made])


def code_of(future: Any) -> int:
    """The code with which a request was refused."""
    with pytest.raises(KafkaException) as caught:
        future.result(SECONDS)
    return int(caught.value.args[0].code())


def fill(broker: BrokerProcess, topic: str, count: int, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": broker.address})
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=partition)
    assert producer.flush(SECONDS) == 0


def test_topics(admin: AdminClient, name: str) -> None:
    described = admin.describe_topics(TopicCollection([name]))[name].result(SECONDS)
    assert (described.name, len(described.partitions), described.is_internal) == (name, 2, False)
    assert {partition.leader.id for partition in described.partitions} == {1}
    assert name in admin.list_topics(timeout=SECONDS).topics
    assert code_of(admin.create_topics([NewTopic(name, 1)])[name]) == KafkaError.TOPIC_ALREADY_EXISTS
    assert code_of(admin.create_topics([NewTopic("no/slash", 1)])["no/slash"]) == KafkaError.TOPIC_EXCEPTION
    assert (
        code_of(admin.create_topics([NewTopic("far", 1, 3)])["far"]) == KafkaError.INVALID_REPLICATION_FACTOR
    )
    assert code_of(admin.create_topics([NewTopic("none", 0)])["none"]) == KafkaError.INVALID_PARTITIONS
    config = {"cleanup.policy": "compacted"}
    assert (
        code_of(admin.create_topics([NewTopic("odd", 1, config=config)])["odd"]) == KafkaError.INVALID_CONFIG
    )
    admin.create_topics([NewTopic("only-validated", 1)], validate_only=True)["only-validated"].result(SECONDS)
    admin.delete_topics([name])[name].result(SECONDS)
    assert code_of(admin.delete_topics([name])[name]) == KafkaError.UNKNOWN_TOPIC_OR_PART
    topics = admin.list_topics(timeout=SECONDS).topics
    assert not {name, "odd", "only-validated"} & set(topics)


def test_more_partitions(admin: AdminClient, broker: BrokerProcess, name: str) -> None:
    admin.create_partitions([NewPartitions(name, 5)])[name].result(SECONDS)
    assert len(admin.list_topics(name, SECONDS).topics[name].partitions) == 5
    fill(broker, name, 3, partition=4)
    for fewer in (5, 4, 1):
        assert (
            code_of(admin.create_partitions([NewPartitions(name, fewer)])[name])
            == KafkaError.INVALID_PARTITIONS
        )


def test_configs(admin: AdminClient, name: str) -> None:
    def describe() -> dict[str, str]:
        resource = ConfigResource(ResourceType.TOPIC, name)
        found = admin.describe_configs([resource])[resource].result(SECONDS)
        return {entry.name: entry.value for entry in found.values()}

    def change(key: str, value: str | None, operation: AlterConfigOpType) -> Any:
        entry = ConfigEntry(key, value, incremental_operation=operation)
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
        return admin.incremental_alter_configs([resource])[resource]

    assert describe()["retention.ms"] == "5000000"
    change("max.message.bytes", "2000", AlterConfigOpType.SET).result(SECONDS)
    change("retention.ms", None, AlterConfigOpType.DELETE).result(SECONDS)
    assert (describe()["max.message.bytes"], describe()["retention.ms"]) == ("2000", "604800000")
    assert code_of(change("max.message.bytes", "many", AlterConfigOpType.SET)) == KafkaError.INVALID_CONFIG
    assert code_of(change("no.such.config", "1", AlterConfigOpType.SET)) == KafkaError.INVALID_CONFIG
    node = ConfigResource(ResourceType.BROKER, "1")
    assert admin.describe_configs([node])[node].result(SECONDS)["durability"].value == "fsync"


def test_settings_take_effect_at_once(admin: AdminClient, broker: BrokerProcess, name: str) -> None:
    entry = ConfigEntry("max.message.bytes", "500", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(SECONDS)
    errors: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    producer.produce(name, bytes(1000), partition=0, on_delivery=lambda error, _message: errors.append(error))
    producer.flush(SECONDS)
    assert errors[0] is not None
    assert errors[0].code() == KafkaError.MSG_SIZE_TOO_LARGE


def test_records_of_a_commit_can_be_deleted_right_after_it(
    admin: AdminClient, broker: BrokerProcess, name: str
) -> None:
    """Also while a large transaction, which was acknowledged, is still being copied."""
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": name, "linger.ms": 50})
    producer.init_transactions()
    everything = TopicPartition(name, 0, -1)
    for number in range(1, 4):
        producer.begin_transaction()
        for _ in range(20_000):
            producer.produce(name, bytes(500), partition=0)
        producer.commit_transaction()
        assert admin.delete_records([everything])[everything].result(SECONDS).low_watermark == number * 20_000


def test_delete_records(admin: AdminClient, broker: BrokerProcess, name: str) -> None:
    fill(broker, name, 10)
    place = TopicPartition(name, 0, 6)
    assert admin.delete_records([place])[place].result(SECONDS).low_watermark == 6
    first = admin.list_offsets({TopicPartition(name, 0): OffsetSpec.earliest()})
    assert next(iter(first.values())).result(SECONDS).offset == 6
    beyond = TopicPartition(name, 0, 11)
    assert code_of(admin.delete_records([beyond])[beyond]) == KafkaError.OFFSET_OUT_OF_RANGE
    consumer = Consumer(
        {"bootstrap.servers": broker.address, "group.id": name, "auto.offset.reset": "earliest"}
    )
    consumer.assign([TopicPartition(name, 0, 0)])
    assert [message.value() for message in consumer.consume(4, SECONDS)] == [b"6", b"7", b"8", b"9"]
    consumer.close()


def test_groups_and_their_offsets(admin: AdminClient, broker: BrokerProcess, name: str) -> None:
    fill(broker, name, 4)
    consumer = Consumer(
        {"bootstrap.servers": broker.address, "group.id": name, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([name])
    assert len(consumer.consume(4, SECONDS)) == 4
    consumer.commit(asynchronous=False)
    described = admin.describe_consumer_groups([name])[name].result(SECONDS)
    assert (described.state.name, len(described.members)) == ("STABLE", 1)
    assert {place.partition for place in described.members[0].assignment.topic_partitions} == {0, 1}
    assert code_of(admin.delete_consumer_groups([name])[name]) == KafkaError.NON_EMPTY_GROUP
    consumer.close()
    listed = admin.list_consumer_groups().result(SECONDS).valid
    assert (name, "EMPTY") in [(group.group_id, group.state.name) for group in listed]
    place = TopicPartition(name, 0, 2)
    asked = ConsumerGroupTopicPartitions(name, [place])
    admin.alter_consumer_group_offsets([asked])[name].result(SECONDS)
    found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])[name].result(SECONDS)
    assert [(each.partition, each.offset) for each in found.topic_partitions if each.offset >= 0] == [(0, 2)]
    admin.delete_consumer_groups([name])[name].result(SECONDS)
    assert code_of(admin.delete_consumer_groups([name])[name]) == KafkaError.GROUP_ID_NOT_FOUND


def test_the_cluster(admin: AdminClient) -> None:
    described = admin.describe_cluster().result(SECONDS)
    assert [node.id for node in described.nodes] == [1]
    assert described.controller.id == 1
    assert len(described.cluster_id) == 22


def test_kafka_python(broker: BrokerProcess, name: str) -> None:
    fill(broker, name, 3)
    admin = KafkaAdminClient(bootstrap_servers=broker.address)
    try:
        with pytest.raises(TopicAlreadyExistsError):
            admin.create_topics([KafkaNewTopic(name, 1, 1)])
        fresh = f"{name}-too"
        admin.create_topics([KafkaNewTopic(fresh, 3, 1)])
        assert {name, fresh} <= set(admin.list_topics())
        (described,) = admin.describe_topics([fresh])
        assert len(described["partitions"]) == 3
        admin.delete_topics([fresh])
        eventually(lambda: fresh not in admin.list_topics())
    finally:
        admin.close()
