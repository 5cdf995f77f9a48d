"""All names that Kafka allows work, whatever they look like on disk; Kafka's own can't be had."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from faircopy.api.create_partitions import SCHEMA as CREATE_PARTITIONS
from faircopy.api.create_topics import SCHEMA as CREATE_TOPICS
from faircopy.api.delete_topics import SCHEMA as DELETE_TOPICS
from faircopy.api.metadata import SCHEMA as METADATA
from faircopy.client.connection import BrokerConnection
from faircopy.publish import names
from faircopy.wire.error_codes import ErrorCode
from tests.broker_process import BrokerProcess, eventually

LONG = "l" * 230
AWKWARD = [
    *(LONG + "x" * more for more in (0, 15, 16, 17, 18, 19)),
    LONG + "x" * 18 + "y",
    "_hidden",
    "_metadata.0a1b2c3d",
    ".dot",
    "...",
    "topic.0a1b2c3d",
    "Case",
    "case",
]
RESERVED = ["__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path, "plain.interval.ms=50") as process:
        yield process


def create(broker: BrokerProcess, name: str, partitions: int = 1, **fields: object) -> ErrorCode:
    topic = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": 1,
        "assignments": [],
        "configs": [],
    }
    body = {"topics": [topic | fields], "timeout_ms": 5_000, "validate_only": False}
    with BrokerConnection(broker.address) as connection:
        answer = connection.ask(CREATE_TOPICS, 7, body)
    return ErrorCode(answer.topics[0].error_code)


def grow(broker: BrokerProcess, name: str, partitions: int) -> ErrorCode:
    topic = {"name": name, "count": partitions, "assignments": None}
    with BrokerConnection(broker.address) as connection:
        body = {"topics": [topic], "timeout_ms": 5_000, "validate_only": False}
        return ErrorCode(connection.ask(CREATE_PARTITIONS, 3, body).results[0].error_code)


def delete(broker: BrokerProcess, name: str) -> ErrorCode:
    with BrokerConnection(broker.address) as connection:
        answer = connection.ask(DELETE_TOPICS, 5, {"topic_names": [name], "timeout_ms": 5_000})
    return ErrorCode(answer.responses[0].error_code)


def topics_of(broker: BrokerProcess) -> set[str]:
    with BrokerConnection(broker.address) as connection:
        return {topic.name for topic in connection.ask(METADATA, 9, {"topics": None}).topics}


def produce(broker: BrokerProcess, name: str) -> None:
    producer = Producer({"bootstrap.servers": broker.address})
    producer.produce(name, name.encode(), partition=0)
    assert producer.flush(60) == 0


def read_one(broker: BrokerProcess, name: str) -> bytes | None:
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition(name, 0, 0)])
    message = consumer.poll(60)
    consumer.close()
    return message.value() if message else None


def rows_of(broker: BrokerProcess, table: str) -> list[Path]:
    """The data files of a plain table that hold rows."""
    found = (broker.data_directory / "plain" / table).glob("d-*.parquet")
    return [path for path in found if "schema" not in path.name]


def has_only(directory: Path, names: set[str]) -> bool:
    return {each.name for each in directory.iterdir()} == names


def test_every_legal_name_works_and_is_gone_when_it_is_deleted(broker: BrokerProcess) -> None:
    for name in AWKWARD:
        assert create(broker, name) == ErrorCode.NONE, name
        produce(broker, name)
    for name in AWKWARD:
        eventually(partial(rows_of, broker, name))
    broker.restart()
    assert topics_of(broker) == set(AWKWARD)
    assert [read_one(broker, name) for name in AWKWARD] == [name.encode() for name in AWKWARD]
    for name in AWKWARD:
        assert delete(broker, name) == ErrorCode.NONE, name
    directories: dict[str, set[str]] = {
        "journal": {"_catalogue", "_metadata", "__consumer_offsets"},
        "log": set(),
        "plain": set(),
    }
    for part, left in directories.items():
        eventually(partial(has_only, broker.data_directory / part, left))
    broker.restart(kill=False)
    assert topics_of(broker) == set()
    broker.ensure_no_traceback()


def test_deleting_a_topic_leaves_the_tables_of_all_others(broker: BrokerProcess) -> None:
    """Whatever they are called: a table is called something else while it is deleted."""
    others = [names.temporary("foo"), ".foo", "foo.tmp", "_foo", "foo."]
    for name in [*others, "foo"]:
        assert create(broker, name) == ErrorCode.NONE
        produce(broker, name)
        eventually(partial(rows_of, broker, name))
    assert delete(broker, "foo") == ErrorCode.NONE
    eventually(lambda: not (broker.data_directory / "plain" / "foo").exists())
    assert all(rows_of(broker, name) for name in others)


def test_a_start_deletes_what_is_left_of_deleted_topics_only(broker: BrokerProcess) -> None:
    """A directory that the catalogue does not know is left alone: perhaps it should know it."""
    assert create(broker, "_gone") == ErrorCode.NONE
    produce(broker, "_gone")
    left = [path for part in ("journal", "log") for path in (broker.data_directory / part).glob("_gone.*")]
    assert len(left) == 2
    assert delete(broker, "_gone") == ErrorCode.NONE
    broker.stop()
    unknown = [broker.data_directory / part / "_strange.0a1b2c3d" for part in ("journal", "log")]
    for path in (*left, *unknown):
        assert not path.exists()
        (path / "0").mkdir(parents=True)
    broker.start()
    assert not any(path.exists() for path in left)
    assert all(path.exists() for path in unknown)
    assert all(f"{path} belongs to no topic" in broker.log for path in unknown)


def test_names_are_refused_whose_tables_nobody_could_read(broker: BrokerProcess) -> None:
    for name in names.UNREADABLE:
        assert create(broker, name) == ErrorCode.INVALID_CONFIG
        assert create(broker, name, configs=[{"name": "plain.table", "value": "other"}]) == ErrorCode.NONE
        produce(broker, name)
        assert create(broker, "orders", configs=[{"name": "plain.table", "value": name}]) == (
            ErrorCode.INVALID_CONFIG
        )
    eventually(lambda: rows_of(broker, "other"))
    assert topics_of(broker) == names.UNREADABLE


@pytest.mark.parametrize("name", RESERVED)
def test_names_that_kafka_reserves_are_refused(broker: BrokerProcess, name: str) -> None:
    assert create(broker, name) == ErrorCode.INVALID_TOPIC_EXCEPTION
    for may_create, code in (
        (True, ErrorCode.INVALID_TOPIC_EXCEPTION),
        (False, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ):
        body = {"topics": [{"name": name}], "allow_auto_topic_creation": may_create}
        with BrokerConnection(broker.address) as connection:
            assert connection.ask(METADATA, 9, body).topics[0].error_code == code
    assert topics_of(broker) == set()


@pytest.mark.parametrize("part", ["journal", "log"])
def test_a_topic_that_cant_be_made_leaves_nothing(broker: BrokerProcess, part: str) -> None:
    """Whatever the operating system says: here a directory leads back to itself."""
    directory = broker.data_directory / part
    aside = directory.with_name("aside")
    assert create(broker, "there", 2) == ErrorCode.NONE
    directory.rename(aside)
    directory.symlink_to(directory)
    assert create(broker, "never", 3) == ErrorCode.KAFKA_STORAGE_ERROR
    assert grow(broker, "there", 4) == ErrorCode.KAFKA_STORAGE_ERROR
    directory.unlink()
    aside.rename(directory)
    assert topics_of(broker) == {"there"}
    assert create(broker, "never", 3) == ErrorCode.NONE
    assert grow(broker, "there", 5) == ErrorCode.NONE
    broker.restart()
    assert topics_of(broker) == {"there", "never"}
    broker.ensure_no_traceback()
