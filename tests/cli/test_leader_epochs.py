"""Leader epochs as clients see them: each start of a broker has a new one (KIP-101, KIP-320)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from faircopy.api.fetch.fetch import SCHEMA as FETCH
from faircopy.api.list_offsets import EARLIEST, LATEST
from faircopy.api.list_offsets import SCHEMA as LIST_OFFSETS
from faircopy.api.metadata import SCHEMA as METADATA
from faircopy.api.offset_for_leader_epoch import SCHEMA as OFFSET_FOR_LEADER_EPOCH
from faircopy.client.connection import BrokerConnection
from faircopy.wire.batch import read_header
from faircopy.wire.error_codes import ErrorCode
from tests.broker_process import BrokerProcess
from tests.clients.talk import create_topic

TOPIC = "orders"
UNNAMED = -1


class Asking:
    """One partition of a broker, asked by a client that has no rules of its own."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.broker = broker

    def _ask(self, *request: Any) -> Any:
        with BrokerConnection(self.broker.address) as connection:
            return connection.ask(*request)

    @property
    def current(self) -> int:
        """The epoch that Metadata tells."""
        (topic,) = self._ask(METADATA, 9, {"topics": [{"name": TOPIC}]}).topics
        return int(topic.partitions[0].leader_epoch)

    def offset(self, timestamp: int, epoch: int = UNNAMED) -> tuple[int, int, int]:
        """Error, offset and epoch."""
        asked = {"partition_index": 0, "current_leader_epoch": epoch, "timestamp": timestamp}
        topics = [{"name": TOPIC, "partitions": [asked]}]
        found = self._ask(LIST_OFFSETS, 6, {"topics": topics}).topics[0].partitions[0]
        return found.error_code, found.offset, found.leader_epoch

    def end_of(self, asked_epoch: int, epoch: int = UNNAMED) -> tuple[int, int, int]:
        """Error, epoch and end offset."""
        asked = {"partition": 0, "current_leader_epoch": epoch, "leader_epoch": asked_epoch}
        topics = [{"topic": TOPIC, "partitions": [asked]}]
        found = self._ask(OFFSET_FOR_LEADER_EPOCH, 4, {"topics": topics}).topics[0].partitions[0]
        return found.error_code, found.leader_epoch, found.end_offset

    def fetch(self, offset: int, epoch: int = UNNAMED, last_epoch: int = UNNAMED, version: int = 12) -> Any:
        asked = {
            "partition": 0,
            "current_leader_epoch": epoch,
            "fetch_offset": offset,
            "last_fetched_epoch": last_epoch,
            "partition_max_bytes": 1 << 20,
        }
        topics = [{"topic": TOPIC, "partitions": [asked]}]
        body = {"max_wait_ms": 0, "min_bytes": 1, "topics": topics}
        return self._ask(FETCH, version, body).responses[0].partitions[0]

    def write(self) -> None:
        """One more message, in a batch of its own."""
        producer = Producer({"bootstrap.servers": self.broker.address})
        producer.produce(TOPIC, b"value", partition=0)
        assert producer.flush(60) == 0

    def epochs(self) -> list[int]:
        """Those of all batches."""
        data, at, found = bytes(self.fetch(0).records), 0, []
        while at < len(data):
            header = read_header(data, at)
            found.append(header.leader_epoch)
            at += header.size_bytes
        return found


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Asking]:
    """A topic with offsets 0 and 1 of one epoch and 2 of a later one, and another start since then."""
    with BrokerProcess(tmp_path, "plain.enabled=false") as broker:
        asking = Asking(broker)
        create_topic(broker.address, TOPIC)
        for messages in (2, 1):
            for _ in range(messages):
                asking.write()
            broker.restart(kill=messages == 2)
        yield asking


def test_what_is_told_of_epochs(asking: Asking) -> None:
    first, second = asking.epochs()[1:]
    current = asking.current
    assert 0 < first < second < current
    assert asking.epochs() == [first, first, second]
    assert asking.offset(EARLIEST) == (0, 0, first)
    assert asking.offset(LATEST) == (0, 3, current)
    assert asking.end_of(first) == (0, first, 2)
    assert asking.end_of(second) == (0, second, 3)
    assert asking.end_of(current) == (0, current, 3)
    assert asking.end_of(current + 1) == (0, -1, -1)
    asking.write()
    asking.broker.restart(kill=True)
    assert asking.epochs() == [first, first, second, current]
    assert asking.end_of(current) == (0, current, 4)
    assert asking.end_of(second) == (0, second, 3)


def test_an_epoch_that_is_not_the_current_one_is_refused(asking: Asking) -> None:
    current = asking.current
    for epoch, code in [
        (current, ErrorCode.NONE),
        (UNNAMED, ErrorCode.NONE),
        (current - 1, ErrorCode.FENCED_LEADER_EPOCH),
        (0, ErrorCode.FENCED_LEADER_EPOCH),
        (current + 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ]:
        assert asking.offset(EARLIEST, epoch)[0] == code
        assert asking.end_of(0, epoch)[0] == code
        for version in (9, 11, 12):
            fetched = asking.fetch(0, epoch, version=version)
            assert (fetched.error_code, bool(fetched.records)) == (code, code == ErrorCode.NONE)


def test_a_reader_whose_log_is_another_is_told_where_they_part(asking: Asking) -> None:
    first, second = asking.epochs()[1:]
    for offset, last_epoch in [(0, first), (2, first), (3, second), (3, asking.current)]:
        fetched = asking.fetch(offset, last_epoch=last_epoch)
        assert (fetched.error_code, fetched.diverging_epoch) == (0, None)
    for offset, last_epoch, end in [(3, first, (first, 2)), (4, second, (second, 3))]:
        fetched = asking.fetch(offset, last_epoch=last_epoch)
        diverging = fetched.diverging_epoch
        assert (fetched.error_code, diverging.epoch, diverging.end_offset) == (0, *end)
        assert fetched.high_watermark == 3 and not fetched.records
    assert asking.fetch(1, last_epoch=asking.current + 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
