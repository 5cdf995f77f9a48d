"""What is not published is not trimmed, up to `plain.unpublished.max.bytes`, and beyond with an ERROR."""

from __future__ import annotations

import os
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker_process import BrokerProcess, eventually
from tests.crash.test_typed_tables import rows_of, send, set_configs

SEGMENT_BYTES = 1 << 14
WAITING_BYTES_MAX = 20 * SEGMENT_BYTES
MESSAGE_BYTES = 2_000
DELETED = "are deleted though their plain table does not have them yet"
SETTINGS = (
    "plain.interval.ms=50",
    "retention.check.interval.ms=100",
    "checkpoint.bytes=65536",
    f"plain.unpublished.max.bytes={WAITING_BYTES_MAX}",
)


def produce(address: str, size_bytes: int, topic: str = "t") -> None:
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0})
    for _ in range(size_bytes // MESSAGE_BYTES):
        producer.produce(topic, os.urandom(MESSAGE_BYTES), partition=0)
        producer.flush(60)


def log_start(address: str, topic: str = "t") -> int:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "reader"})
    low, _ = consumer.get_watermark_offsets(TopicPartition(topic, 0), 60)
    consumer.close()
    return int(low)


def await_retention(address: str) -> None:
    """Return when retention was applied to all topics, from beginning to end: twice it was to another one."""
    for _ in range(2):
        before = log_start(address, "witness")
        produce(address, 3 * SEGMENT_BYTES, "witness")
        eventually(lambda before=before: log_start(address, "witness") > before)  # type: ignore[misc]


def test_retention_waits_for_a_table_that_is_stopped_but_not_for_ever(tmp_path: Path) -> None:
    retention = {"segment.bytes": str(SEGMENT_BYTES), "retention.bytes": str(SEGMENT_BYTES)}
    config = {
        "plain.value.format": "json",
        "plain.schema": "id bigint",
        "plain.bad.values": "stop",
        "plain.retention.ms": "-1",
    }
    with BrokerProcess(tmp_path, *SETTINGS) as broker:
        admin = AdminClient({"bootstrap.servers": broker.address})
        admin.create_topics([NewTopic("t", 1, config=retention | config)])["t"].result(60)
        witness = NewTopic("witness", 1, config=retention | {"plain.enabled": "false"})
        admin.create_topics([witness])["witness"].result(60)
        send(broker.address, "t", b"{}")
        eventually(lambda: len(rows_of(broker, "t")) == 1)
        produce(broker.address, MESSAGE_BYTES)  # not JSON: it stops the table
        eventually(lambda: "value of t-0 at offset 1" in broker.log)
        produce(broker.address, WAITING_BYTES_MAX // 2)
        for _ in range(2):
            await_retention(broker.address)
            assert log_start(broker.address) == 0 and DELETED not in broker.log
            broker.restart()
        produce(broker.address, WAITING_BYTES_MAX)
        eventually(lambda: log_start(broker.address) > 0)
        (line, *_) = [line for line in broker.log.splitlines() if DELETED in line]
        # The first message is published; a broker that was restarted knows once it has opened the table.
        assert "ERROR t-0: offsets 0 to " in line or "ERROR t-0: offsets 1 to " in line
        assert "setting plain.unpublished.max.bytes" in line
        set_configs(broker.address, "t", plain_bad_values="keep")
        eventually(lambda: len(rows_of(broker, "t")) > 1)
        lost = rows_of(broker, "t")[1]["offset"] - 1
        eventually(lambda: f"{lost} messages were deleted from their logs before they were" in broker.log)
        start = log_start(broker.address)
        assert start > 1
        produce(broker.address, 2 * SEGMENT_BYTES)
        eventually(lambda: log_start(broker.address) > start)  # what is published may go
