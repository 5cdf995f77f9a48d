"""A partition that can't be read now is not taken for damaged: it is stopped for that alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from faircopy.api.fetch.answer import FetchPlanner, ToRead
from faircopy.datalog.index import Place
from faircopy.datalog.read import DamagedLog, ReadPlan
from faircopy.errors import FaircopyError
from faircopy.partition.name import PartitionName
from faircopy.partition.participant import NotLed
from faircopy.storage.failures import NoDescriptors, StorageFailure
from faircopy.wire.error_codes import ErrorCode


class StubTopics:
    """One partition, whose log begins at offset 10."""

    def __init__(self) -> None:
        log = SimpleNamespace(start_offset=10)
        self.partition = SimpleNamespace(name=PartitionName("t", 0), log=log, failure=None)
        self.found: Any = self.partition
        self.stopped: list[FaircopyError] = []

    def find(self, topic: str, number: int) -> Any:
        assert (topic, number) == ("t", 0)
        return self.found

    def stop(self, partition: Any, error: FaircopyError) -> None:
        assert partition is self.partition
        self.stopped.append(error)


def told(hosted_topics: StubTopics, offset: int, error: FaircopyError) -> ErrorCode:
    plan = ReadPlan(cast(Any, None), Place(offset, offset, 0), offset, 100)
    read = ToRead(0, cast(Any, hosted_topics.partition), plan, 100)
    return FetchPlanner(cast(Any, hosted_topics), cast(Any, None)).failure_of(read, error)


@pytest.mark.parametrize("error", [DamagedLog("it ends too early"), StorageFailure("no such file")])
def test_what_went_while_it_was_read_is_out_of_range(error: FaircopyError) -> None:
    hosted_topics = StubTopics()
    assert told(hosted_topics, 9, error) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert hosted_topics.stopped == []
    assert told(hosted_topics, 10, error) is ErrorCode.KAFKA_STORAGE_ERROR
    assert hosted_topics.stopped == [error]


def test_a_partition_that_changed_hands_while_it_was_read_is_read_elsewhere() -> None:
    hosted_topics = StubTopics()
    hosted_topics.partition.failure = NotLed("t-0 has no leader now")
    hosted_topics.found = SimpleNamespace()
    assert told(hosted_topics, 10, StorageFailure("no such file")) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert hosted_topics.stopped == []


def test_without_descriptors_readers_come_again() -> None:
    hosted_topics = StubTopics()
    assert told(hosted_topics, 10, NoDescriptors("too many open files")) is ErrorCode.KAFKA_STORAGE_ERROR
    assert hosted_topics.stopped == []


@pytest.mark.parametrize("made_again", [None, SimpleNamespace()])
def test_a_topic_that_went_while_it_was_read_is_unknown(made_again: Any) -> None:
    hosted_topics = StubTopics()
    hosted_topics.found = made_again
    assert told(hosted_topics, 10, StorageFailure("no such file")) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert hosted_topics.stopped == []
