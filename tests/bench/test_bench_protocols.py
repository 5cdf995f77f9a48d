"""Every rival does what it claims, or its times mean nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from confluent_kafka.cimpl import NewTopic

from bench.protocols.correctness import Incorrect, check, producer_of
from bench.systems.faircopy import LOCAL_COPY, Faircopy
from tests.broker_process import eventually
from tests.seeds import seed_for

PROTOCOLS = [LOCAL_COPY, "remote-copy", "markers", "parallel-prepare"]
LEVELS = [IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED]


@pytest.mark.parametrize("durability", ["fsync", "os"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_protocol_shows_what_was_committed(tmp_path: Path, protocol: str, durability: str) -> None:
    seed = seed_for("protocols")
    system = Faircopy(tmp_path, protocol, durability)
    system.start()
    try:
        assert check(system.address, seed) > 0, f"seed {seed}"
    finally:
        system.stop()
    assert "Traceback" not in system.log


def test_the_floor_commits(tmp_path: Path) -> None:
    system = Faircopy(tmp_path, "none")
    system.start()
    try:
        assert check(system.address, 1, may_abort=False) > 0
        with pytest.raises(Incorrect, match="aborted"):
            check(system.address, 2)
    finally:
        system.stop()


@pytest.mark.parametrize("protocol", ["markers", "parallel-prepare"])
def test_with_markers_the_isolation_level_decides_what_a_reader_sees(tmp_path: Path, protocol: str) -> None:
    system = Faircopy(tmp_path, protocol, "os")
    system.start()
    try:
        place = TopicPartition("t", 0)
        admin = AdminClient({"bootstrap.servers": system.address, "log_level": 0})
        admin.create_topics([NewTopic("t", 1)])["t"].result(30)
        producer = producer_of(system.address, "hanging")
        producer.begin_transaction()
        producer.produce("t", b"open", partition=0)
        producer.flush(30)
        assert [end_of_log(admin, place, level) for level in LEVELS] == [1, 0]
        assert [read(system.address, place, level) for level in LEVELS] == [[b"open"], []]
        producer.abort_transaction(30)
        # The abort's marker may come after its ack; it has an offset of its own.
        eventually(lambda: [end_of_log(admin, place, level) for level in LEVELS] == [2, 2])
        assert [read(system.address, place, level) for level in LEVELS] == [[b"open"], []]
    finally:
        system.stop()


def end_of_log(admin: AdminClient, place: TopicPartition, level: IsolationLevel) -> int:
    """What ListOffsets tells a reader of this level."""
    found = admin.list_offsets({place: OffsetSpec.latest()}, isolation_level=level)[place].result(30)
    return int(found.offset)


def read(address: str, place: TopicPartition, level: IsolationLevel) -> list[bytes | None]:
    """All values from offset 0 to the end that Fetch tells a reader of this level."""
    consumer = Consumer(
        {
            "bootstrap.servers": address, "group.id": "g", "isolation.level": level.name.lower(),
            "log_level": 0, "enable.auto.commit": False, "enable.partition.eof": True,
        }
    )  # fmt: skip
    consumer.assign([TopicPartition(place.topic, place.partition, 0)])
    values = []
    while (message := consumer.poll(30)) is not None and message.error() is None:
        values.append(message.value())
    consumer.close()
    assert message is not None, "there is no end"
    return values
