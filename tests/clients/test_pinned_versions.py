"""Clients that do not ask for versions: they use those of the release that they are told."""

from __future__ import annotations

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

from faircopy.api.api_versions import SCHEMA as API_VERSIONS
from faircopy.client.connection import BrokerConnection
from faircopy.wire.api_keys import ApiKey
from tests.broker_process import BrokerProcess
from tests.clients.adapter import WAIT_SECONDS
from tests.clients.talk import create_topic

RELEASES = [(2, 8), (3, 3), (3, 7), (3, 9)]
IN_KAFKA_3_9 = {
    ApiKey.PRODUCE: 11,
    ApiKey.LIST_OFFSETS: 9,
    ApiKey.METADATA: 12,
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 9,
    ApiKey.FIND_COORDINATOR: 6,
    ApiKey.JOIN_GROUP: 9,
    ApiKey.HEARTBEAT: 4,
    ApiKey.LEAVE_GROUP: 5,
    ApiKey.SYNC_GROUP: 5,
    ApiKey.DESCRIBE_GROUPS: 5,
    ApiKey.LIST_GROUPS: 5,
    ApiKey.API_VERSIONS: 4,
    ApiKey.CREATE_TOPICS: 7,
    ApiKey.DELETE_TOPICS: 6,
    ApiKey.DELETE_RECORDS: 2,
    ApiKey.INIT_PRODUCER_ID: 5,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: 4,
    ApiKey.ADD_OFFSETS_TO_TXN: 4,
    ApiKey.END_TXN: 4,
    ApiKey.TXN_OFFSET_COMMIT: 4,
    ApiKey.DESCRIBE_CONFIGS: 4,
    ApiKey.ALTER_CONFIGS: 2,
    ApiKey.DESCRIBE_LOG_DIRS: 4,
    ApiKey.CREATE_PARTITIONS: 3,
    ApiKey.DELETE_GROUPS: 2,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: 1,
    ApiKey.OFFSET_DELETE: 0,
    ApiKey.DESCRIBE_CLUSTER: 1,
    ApiKey.DESCRIBE_PRODUCERS: 0,
    ApiKey.DESCRIBE_TRANSACTIONS: 0,
    ApiKey.LIST_TRANSACTIONS: 1,
}
"""The newest version of each API. Without Fetch, whose newer versions have topic ids, and AddPartitionsToTxn,
whose newer versions only brokers send.
"""


def test_what_kafka_3_9_has_is_offered(broker: BrokerProcess) -> None:
    with BrokerConnection(broker.address) as connection:
        rows = connection.ask(API_VERSIONS, 0, {}).api_keys
    newest = {row.api_key: row.max_version for row in rows}
    assert {key: version for key, version in IN_KAFKA_3_9.items() if newest[key] < version} == {}


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_a_pinned_client_writes_and_reads(
    broker: BrokerProcess, topic: str, release: tuple[int, ...]
) -> None:
    create_topic(broker.address, topic)
    pinned = {"bootstrap_servers": broker.address, "api_version": release}
    for acks in (0, 1, "all"):
        producer = KafkaProducer(**pinned, acks=acks, enable_idempotence=acks == "all")
        producer.send(topic, str(acks).encode(), partition=0).get(WAIT_SECONDS)
        producer.close()
    transactional = KafkaProducer(**pinned, transactional_id=topic)
    transactional.init_transactions()
    transactional.begin_transaction()
    transactional.send(topic, b"committed", partition=0)
    transactional.commit_transaction()
    transactional.close()
    with_group = KafkaConsumer(
        topic,
        **pinned,
        group_id=topic,
        auto_offset_reset="earliest",
        consumer_timeout_ms=int(WAIT_SECONDS * 1000),
    )
    values = [next(with_group).value for _ in range(4)]
    with_group.commit()
    with_group.close()
    assert values == [b"0", b"1", b"all", b"committed"]
    admin = KafkaAdminClient(**pinned)
    (offset,) = admin.list_group_offsets([topic])[topic].values()
    assert offset.offset == 4
    admin.close()
