"""A table on a disk that is simulated, the log that it is published from, and a clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from faircopy.publish.requests import Cut
from faircopy.publish.table import Table
from faircopy.wire.records import NewRecord
from tests.unit.publish.published_log import GrowingLog, Partition
from tests.unit.publish.simulated_disk import SimulatedFiles
from tests.unit.publish.table_reader import read_offsets

TABLE = Path("/plain/orders")
ORDERS: Partition = ("orders", 0)
DAY_MS = 86_400_000
START_MS = 1_790_000_000_000
GOOD = [NewRecord(b"value %d" % i, b"key", 1000 + i, (("h", b"x"),) * (i % 3)) for i in range(10)]


class Place:
    """A disk, a log on it, a table to publish it to, and a clock."""

    def __init__(self, partitions: list[Partition] | None = None, directory: Path = TABLE) -> None:
        self.files = SimulatedFiles()
        self.files.make_directory(Path("/log"))
        self.log = GrowingLog(self.files, Path("/log"), partitions or [ORDERS])
        self.now_ms = START_MS
        self.directory = directory
        self.table = self.open()

    def open(self) -> Table:
        self.files.locked.clear()
        self.table = Table(self.files, self.directory, lambda: self.now_ms)
        return self.table

    def publish(self, cuts: tuple[Cut, ...] | None = None) -> Any:
        return self.table.publish(self.log.cut() if cuts is None else cuts)

    def offsets(self) -> dict[Partition, list[int]]:
        return read_offsets(self.files, self.directory)


def publish_days(place: Place, publications: int, each_ms: int = DAY_MS // 4) -> None:
    for number in range(publications):
        for partition in place.log.ends:
            place.log.append(partition, GOOD[: 1 + number % 3], f"7.0.{number}")
        place.publish()
        place.now_ms += each_ms


def some_table() -> Place:
    place = Place()
    publish_days(place, 3)
    return place
