"""Spans of a damaged partition: one that is stopped, of which not even the ends are known, and one that rots
while the broker runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from faircopy.api.spans import spans
from faircopy.copier.span_chunk import Span
from faircopy.datalog.read import DamagedLog
from faircopy.storage.sealed import DamagedRecord
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import UUID_ZERO


class StoppedPartition:
    """A partition that was damaged when the broker started, so that nothing of its log was read."""

    log = SimpleNamespace(start_offset=0, end_offset=0)

    def ensure_readable(self) -> None:
        raise DamagedLog("a record of the state store is damaged")


class RottingPartition:
    """A partition whose spans have rotted since the start."""

    log = SimpleNamespace(start_offset=0, end_offset=200)

    def __init__(self) -> None:
        self.copier = SimpleNamespace(spans=self)

    def ensure_readable(self) -> None:
        pass

    def between(self, _first: int, _end: int) -> Iterator[Span]:
        raise DamagedRecord(Path("data.mdb"), "spans", b"key")


def request(start: int) -> Any:
    return SimpleNamespace(topic_id=UUID_ZERO, name="t", partition=0, start_offset=start, end_offset=200)


@pytest.mark.parametrize("start", [0, 100])
def test_damage_is_not_taken_for_deleted_records(start: int) -> None:
    hosted_topics = SimpleNamespace(find=lambda _topic, _number: StoppedPartition())
    context: Any = SimpleNamespace(parts=SimpleNamespace(hosted=hosted_topics))
    answer = asyncio.run(spans(request(start), context))
    assert answer == {"error_code": ErrorCode.KAFKA_STORAGE_ERROR, "spans": []}


def test_damage_that_is_met_later_stops_the_partition() -> None:
    partition = RottingPartition()
    stopped: list[tuple[object, str]] = []
    hosted_topics = SimpleNamespace(
        find=lambda _topic, _number: partition,
        stop=lambda which, error: stopped.append((which, str(error))),
    )
    context: Any = SimpleNamespace(parts=SimpleNamespace(hosted=hosted_topics))
    answer = asyncio.run(spans(request(0), context))
    assert answer == {"error_code": ErrorCode.KAFKA_STORAGE_ERROR, "spans": []}
    ((which, error),) = stopped
    assert which is partition and error.startswith("data.mdb is damaged: in table spans, the record of key")
