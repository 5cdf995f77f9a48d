"""DeleteRecords of many partitions: they share writes to the disk."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from faircopy.api.delete_records import AT_ONCE, delete_records
from faircopy.loop.pace import NO_PACE
from faircopy.wire.error_codes import ErrorCode
from tests.simulation.loop import VirtualLoop

TOPICS, NUMBERS = ("a", "b", "c"), list(range(2 * AT_ONCE // 3 + 1))
END = 9


class SharedDisk:
    """A disk that takes a while, and writes all that waits for it; `writes` counts how often."""

    def __init__(self) -> None:
        self.writes = 0
        self._waiting: list[Callable[[], None]] = []

    def trim(self, _offset: int, done: Callable[[], None]) -> None:
        if not self._waiting:
            asyncio.get_running_loop().call_later(0.001, self._write)
        self._waiting.append(done)

    def _write(self) -> None:
        self.writes += 1
        waiting, self._waiting = self._waiting, []
        for done in waiting:
            done()


class StubTopics:
    """Topics whose partitions are all on one disk."""

    def __init__(self, disk: SharedDisk) -> None:
        self._partition = SimpleNamespace(
            log=SimpleNamespace(start_offset=0, end_offset=END),
            ensure_replicable=lambda: None,
            trim=disk.trim,
        )

    def find(self, topic: str, partition: int) -> Any:
        return self._partition if topic in TOPICS and partition in NUMBERS else None

    def known(self, topic: str) -> Any:
        return SimpleNamespace(is_deleted_from=True)


def delete(disk: SharedDisk, topics: dict[str, list[int]], offset: int) -> list[tuple[str, int, int, int]]:
    """The rows of the answer."""
    asked = [
        SimpleNamespace(
            name=name, partitions=[SimpleNamespace(partition_index=n, offset=offset) for n in numbers]
        )
        for name, numbers in topics.items()
    ]
    context = SimpleNamespace(pace=NO_PACE, parts=SimpleNamespace(hosted=StubTopics(disk), clock=None))
    loop = VirtualLoop()
    with contextlib.closing(loop):
        body = loop.run(delete_records(cast(Any, SimpleNamespace(topics=asked)), cast(Any, context)))
    return [
        (topic["name"], row["partition_index"], row["low_watermark"], row["error_code"])
        for topic in body["topics"]
        for row in topic["partitions"]
    ]


def test_partitions_share_writes_to_the_disk() -> None:
    """Of several topics, too."""
    disk = SharedDisk()
    topics = {"a": NUMBERS, "none": [0], "b": NUMBERS, "c": NUMBERS}
    rows = delete(disk, topics, 5)
    assert disk.writes == -(-len(rows) // AT_ONCE)
    expected = [(name, number, 5, ErrorCode.NONE) for name, them in topics.items() for number in them]
    expected[len(NUMBERS)] = ("none", 0, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert rows == expected


def test_a_few_partitions_wait_for_no_others() -> None:
    disk = SharedDisk()
    assert delete(disk, {"a": [1]}, 5) == [("a", 1, 5, ErrorCode.NONE)]
    assert delete(disk, {"a": [1], "b": [2]}, END) == [("a", 1, END, 0), ("b", 2, END, 0)]
    assert disk.writes == 2
    assert delete(disk, {"a": []}, 5) == delete(disk, {}, 5) == []
