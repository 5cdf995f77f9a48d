"""What open transactions may write is bounded: each client is refused, aborts, and goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from faircopy.api.add_offsets_to_txn import SCHEMA as ADD_OFFSETS_TO_TXN
from faircopy.api.init_producer_id import SCHEMA as INIT_PRODUCER_ID
from faircopy.api.produce.produce import SCHEMA as PRODUCE
from faircopy.api.txn_offset_commit import SCHEMA as TXN_OFFSET_COMMIT
from faircopy.client.connection import BrokerConnection
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import NewRecord, build_batch
from tests.broker_process import BrokerProcess, environment
from tests.clients.adapter import Client, ClientFailed, Place, Producer
from tests.clients.conftest import CLIENTS
from tests.clients.talk import Talk, commit_values, create_topic, failure
from tests.wire_abuse.instance import TOPIC, Instance, visible

ONE_MAX, ALL_MAX = 100_000, 250_000
VALUE = b"v" * 10_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker for each test: what others leave open would count."""
    settings = (f"transaction.drafts.max.bytes={ONE_MAX}", f"drafts.max.bytes={ALL_MAX}")
    with BrokerProcess(tmp_path, "plain.enabled=false", *settings) as process:
        yield process
        process.ensure_no_traceback()


def write(producer: Producer, place: Place, messages: int) -> None:
    """Each in a batch of its own."""
    topic, partition = place
    for _ in range(messages):
        producer.send(topic, VALUE, partition=partition)
        producer.flush()


def test_one_transaction_writes_too_much(broker: BrokerProcess, client: Client, topic: str) -> None:
    """In two partitions, and over a kill."""
    create_topic(broker.address, topic, 2)
    with Talk(client, broker.address) as talk:
        producer = talk.transactional(topic)
        producer.begin()
        write(producer, (topic, 0), 4)
        write(producer, (topic, 1), 4)
        broker.restart()

        def go_on() -> None:
            write(producer, (topic, 0), 2)
            producer.commit()

        failure(go_on)
        assert f"transaction.drafts.max.bytes is {ONE_MAX}" in broker.log
        try:
            producer.abort()
        except ClientFailed:
            producer = talk.transactional(topic)
        assert drafts_bytes(broker) == 0
        commit_values(producer, (topic, 0), [b"small"])
        assert talk.values((topic, 0)) == [b"small"]
        assert talk.values((topic, 1)) == []


def test_all_together_write_too_much(broker: BrokerProcess, topic: str) -> None:
    """What commits makes room for others."""
    create_topic(broker.address, topic, 3)
    with Talk(CLIENTS[0], broker.address) as talk:
        producers = [talk.transactional(f"{topic}{number}") for number in range(3)]
        for number, producer in enumerate(producers):
            producer.begin()
            write(producer, (topic, number), 8)
        assert drafts_bytes(broker) == pytest.approx(24 * len(VALUE), rel=0.1)
        failure(lambda: write(producers[0], (topic, 0), 1))
        producers[0].abort()
        write(producers[1], (topic, 1), 1)
        for producer in producers[1:]:
            producer.commit()
        assert drafts_bytes(broker) == 0
        assert [len(talk.values((topic, number))) for number in range(3)] == [0, 9, 8]
    assert f"drafts.max.bytes is {ALL_MAX}" in broker.log


def drafts_bytes(broker: BrokerProcess) -> int:
    """What `faircopy status` says of it."""
    command = [sys.executable, "-m", "faircopy", "status", "--json", "--broker", broker.address]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=60, check=True)
    about = json.loads(ran.stdout)
    assert about["drafts_max_bytes"] == ALL_MAX
    return int(about["drafts_bytes"])


def test_the_answer_names_the_setting(broker: BrokerProcess) -> None:
    create_topic(broker.address, TOPIC)
    with BrokerConnection(broker.address) as connection:
        instance = Instance(connection, "a")
        instance.add()
        batch = build_batch(
            [NewRecord(b"v" * ONE_MAX)],
            producer_id=instance.producer_id,
            producer_epoch=instance.epoch,
            base_sequence=0,
            transactional=True,
        )
        data = [{"name": TOPIC, "partition_data": [{"index": 0, "records": batch}]}]
        asked = {"transactional_id": "a", "acks": -1, "timeout_ms": 5_000, "topic_data": data}
        (topic,) = connection.ask(PRODUCE, 8, asked).responses
        (refused,) = topic.partition_responses
        assert refused.error_code == ErrorCode.TRANSACTION_ABORTABLE
        assert f"transaction.drafts.max.bytes is {ONE_MAX}" in refused.error_message
        # Whoever goes on regardless commits no half of it.
        assert instance.produce(b"small") == ErrorCode.TRANSACTION_ABORTABLE
        assert instance.end() == ErrorCode.TRANSACTION_ABORTABLE
        assert instance.end(commit=False) == 0
        instance.add()
        assert instance.produce(b"small") == 0
        assert instance.end() == 0
        assert visible(connection) == [b"small"]


def test_offsets_count_too(broker: BrokerProcess) -> None:
    """They are drafts, and the broker keeps them in memory until their transaction ends."""
    create_topic(broker.address, TOPIC)
    with BrokerConnection(broker.address) as connection:
        instance = Instance(connection, "a")
        added = instance.identity() | {"group_id": "g"}
        assert connection.ask(ADD_OFFSETS_TO_TXN, 1, added).error_code == 0
        metadata = "m" * 4_000
        places = [{"partition_index": 0, "committed_offset": 1, "committed_metadata": metadata}]
        asked = instance.identity() | {"group_id": "g", "topics": [{"name": TOPIC, "partitions": places}]}
        codes = []
        for _ in range(2 * ONE_MAX // len(metadata)):
            (answered,) = connection.ask(TXN_OFFSET_COMMIT, 2, asked).topics
            codes.append(ErrorCode(answered.partitions[0].error_code))
        assert {ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE} == set(codes)
        assert codes.index(ErrorCode.TRANSACTION_ABORTABLE) == pytest.approx(ONE_MAX // len(metadata), abs=3)
        assert instance.end(commit=False) == 0
    assert drafts_bytes(broker) == 0


def test_a_refused_timeout_is_logged(broker: BrokerProcess) -> None:
    """By default seven days are allowed, as Flink asks for an hour."""
    with BrokerConnection(broker.address) as connection:
        for timeout_ms, expected in ((604_800_000, 0), (604_800_001, ErrorCode.INVALID_TRANSACTION_TIMEOUT)):
            asked = {"transactional_id": "slow", "transaction_timeout_ms": timeout_ms}
            assert connection.ask(INIT_PRODUCER_ID, 1, asked).error_code == expected
    assert "'slow' asks for transaction.timeout.ms=604800001" in broker.log
    assert "transaction.max.timeout.ms" in broker.log
