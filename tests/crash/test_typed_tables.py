"""Typed columns of a real broker's tables: what does not fit, changes of the schema, and kills on the way."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from faircopy.publish.files import Files
from faircopy.publish.live_files import NoTableError, live_files
from tests.broker_process import BrokerProcess, eventually
from tests.crash.test_plain_tables import PARTITIONS, assert_sound, make_topics, publisher_of
from tests.seeds import seed_for

TRANSACTIONS = 80
SCHEMA = "id bigint, name string"
WIDER = f"{SCHEMA}, more double"


def set_configs(address: str, topic: str, **configs: str) -> None:
    changes = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in configs.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=changes)
    admin = AdminClient({"bootstrap.servers": address})
    admin.incremental_alter_configs([resource])[resource].result(60)


def rows_of(broker: BrokerProcess, table: str) -> list[dict[str, Any]]:
    try:
        paths = live_files(Files(), broker.data_directory / "plain" / table)
    except NoTableError:
        return []
    return [row for path in paths for row in parquet.ParquetFile(path).read().to_pylist()]


def send(address: str, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": address})
    for value in values:
        producer.produce(topic, value, partition=0)
    producer.flush(60)


def test_dead_letters_over_kills_of_broker_and_publisher(tmp_path: Path) -> None:
    """And a schema that grows meanwhile: each message is in one of the two tables, once."""
    chance = random.Random(seed_for("dead letters over kills"))
    settings = ["plain.interval.ms=60", "checkpoint.bytes=65536"]
    json_values = {"plain_value_format": "json", "plain_schema": SCHEMA, "plain_bad_values": "dead-letter"}
    with BrokerProcess(tmp_path, *settings) as broker:
        make_topics(broker.address, "t", **json_values)
        acked: list[int] = []
        producer: Producer | None = None
        for number in range(TRANSACTIONS):
            if chance.random() < 0.06:
                broker.restart()
            if chance.random() < 0.1 and (publisher := publisher_of(broker)) is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(publisher.pid, signal.SIGKILL)
            if number == TRANSACTIONS // 2:
                set_configs(broker.address, "t", plain_schema=WIDER)
            producer = write(broker.address, producer, number, acked)
        assert len(acked) > TRANSACTIONS // 2
        eventually(lambda: has_everything(broker, acked))
        columns = {name for row in rows_of(broker, "t") for name in row}
        assert {"id", "name", "more", "_corrupt_record"} <= columns
        broker.stop()
        assert_sound(broker)


def write(address: str, producer: Producer | None, number: int, acked: list[int]) -> Producer | None:
    """One transaction with two good values and a bad one; the producer, or None when it is lost."""
    try:
        if producer is None:
            producer = Producer(
                {"bootstrap.servers": address, "transactional.id": "typed", "linger.ms": 0, "log_level": 0}
            )
            producer.init_transactions(60)
        producer.begin_transaction()
        for part in range(2):
            producer.produce("t", json.dumps({"id": number, "name": f"{part}"}), partition=part % PARTITIONS)
        producer.produce("t", f"bad {number}", partition=number % PARTITIONS)
        producer.commit_transaction(60)
        acked.append(number)
        return producer
    except KafkaException:
        return None


def has_everything(broker: BrokerProcess, acked: list[int]) -> bool:
    good, bad = rows_of(broker, "t"), rows_of(broker, "t~bad")
    ids = [(row["id"], row["name"]) for row in good]
    texts = [row["value"] for row in bad]
    assert len(set(ids)) == len(ids) and len(set(texts)) == len(texts)
    assert all(row["_corrupt_record"] is None and row["id"] is not None for row in good)
    assert all(text.startswith(b"bad ") for text in texts)
    keys = [(row["partition"], row["offset"]) for row in [*good, *bad]]
    assert len(set(keys)) == len(keys)
    is_complete = {(number, f"{part}") for number in acked for part in range(2)} <= set(ids)
    return is_complete and {b"bad %d" % number for number in acked} <= set(texts)


def test_a_bad_value_stops_the_table_until_somebody_decides(tmp_path: Path) -> None:
    json_values = {"plain_value_format": "json", "plain_schema": SCHEMA, "plain_bad_values": "stop"}
    with BrokerProcess(tmp_path, "plain.interval.ms=50") as broker:
        make_topics(broker.address, "t", "u", **json_values)
        for topic in ("t", "u"):
            send(broker.address, topic, b'{"id": 1}')
            eventually(lambda topic=topic: len(rows_of(broker, topic)) == 1)  # type: ignore[misc]
            send(broker.address, topic, b'{"id": 2}', b"bad")
            eventually(lambda topic=topic: f"value of {topic}-0 at offset 2" in broker.log)  # type: ignore[misc]
            assert [row["id"] for row in rows_of(broker, topic)] == [1]
        (line, *_) = [line for line in broker.log.splitlines() if "value of t-0 at offset 2" in line]
        assert "ERROR" in line and "plain table t: " in line and "plain.bad.values" in line
        set_configs(broker.address, "t", plain_bad_values="keep")
        eventually(lambda: [row["id"] for row in rows_of(broker, "t")] == [1, 2, None])
        admin = AdminClient({"bootstrap.servers": broker.address})
        admin.delete_records([TopicPartition("u", 0, 3)])[TopicPartition("u", 0, 3)].result(60)
        send(broker.address, "u", b'{"id": 4}')
        set_configs(broker.address, "u", retention_ms="100000000")  # any change: it is not to wait a minute
        eventually(lambda: [row["id"] for row in rows_of(broker, "u")][-1] == 4)


def test_settings_that_a_table_can_not_have_are_refused(fresh_broker: BrokerProcess) -> None:
    address = fresh_broker.address
    make_topics(address, "t", plain_value_format="json", plain_schema=SCHEMA)
    with pytest.raises(KafkaException, match="character 4 is 'doubel'"):
        set_configs(address, "t", plain_schema="id doubel")
    set_configs(address, "t", plain_schema="id string")  # it has no messages
    set_configs(address, "t", plain_schema=SCHEMA)
    send(address, "t", b"{}")
    for schema, why in (("id string", "columns can't change any more"), ("id bigint", "lacks name")):
        with pytest.raises(KafkaException, match=why):
            set_configs(address, "t", plain_schema=schema)
    set_configs(address, "t", plain_schema=WIDER)
    set_configs(address, "t", plain_schema="id string", plain_table="another")
    admin = AdminClient({"bootstrap.servers": address})
    for validate_only in (True, False):
        config = {"plain.value.format": "json", "plain.schema": "id double", "plain.table": "another"}
        new = NewTopic("v", 1, config=config)
        with pytest.raises(KafkaException, match="share the plain table 'another'"):
            admin.create_topics([new], validate_only=validate_only)["v"].result(60)
