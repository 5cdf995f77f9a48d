"""A table after a crash at any operation, or any failed one: readable, and with every row exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import pytest

from faircopy.publish import compaction, merge, names
from faircopy.publish.files import FsyncError
from faircopy.publish.requests import Cut
from faircopy.publish.table import Table
from faircopy.wire.records import NewRecord
from tests.unit.publish.published_log import GrowingLog, Partition
from tests.unit.publish.simulated_disk import DirectoryNode, SimulatedFiles, crashed, failing_sync
from tests.unit.publish.table_reader import delta_contents, listed, offsets_in, read_offsets

TABLE = Path("/plain/orders")
PARTITIONS: list[Partition] = [("orders", 0), ("orders", 1), ("audit", 0)]
HALF_A_DAY_MS = 43_200_000
PUBLICATIONS = 33
COMPACT_WITH_MERGES = 14  # this publication is entry 47.compact, and the other entry 63.compact
COMPACT_WITH_DELETIONS = 30
INTERESTING = [0, 1, 2, *range(13, 17), *range(29, 32)]


@pytest.fixture(scope="module", autouse=True)
def small_merges() -> Iterator[None]:
    """Merges of few files, in several bands."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compaction, "MANY_FILES", 4)
        patched.setattr(merge, "BAND_BYTES", 600)
        yield


class Clock:
    def __init__(self, publications: int) -> None:
        self.ms = 1_790_000_000_000 + publications * HALF_A_DAY_MS

    def __call__(self) -> int:
        return self.ms


class Moment(NamedTuple):
    """The disk before an operation of a publication, of which `acknowledged` were done before."""

    acknowledged: int
    operation: str
    disk: DirectoryNode


class History(NamedTuple):
    publications: list[tuple[Cut, ...]]
    moments: list[Moment]
    disk: DirectoryNode


def make_publications(files: SimulatedFiles) -> list[tuple[Cut, ...]]:
    log = GrowingLog(files, Path("/log"), PARTITIONS)
    publications = []
    for number in range(PUBLICATIONS):
        for place, partition in enumerate(PARTITIONS):
            if (number + place) % 3:
                log.append(partition, [NewRecord(b"%d" % number)] * (1 + number % 4), f"7.0.{number}")
        publications.append(log.cut())
    return publications


@pytest.fixture(scope="module")
def history() -> History:
    """A whole life of a table, and the disk before each operation of its interesting publications."""
    files = SimulatedFiles()
    files.make_directory(Path("/log"))
    publications = make_publications(files)
    files.sync_directory(Path("/"))
    moments: list[Moment] = []
    acknowledged = 0
    operations = count()

    def remember(operation: str) -> None:
        # Parquet takes many writes a file, and one is much like another.
        if acknowledged in INTERESTING and (operation != "write" or next(operations) % 8 == 0):
            moments.append(Moment(acknowledged, operation, files.snapshot()))

    files.before_operation = remember
    clock = Clock(0)
    table = Table(files, TABLE, clock)
    for acknowledged, cuts in enumerate(publications):
        clock.ms = Clock(acknowledged).ms
        table.publish(cuts)
    return History(publications, moments, files.snapshot())


def expected_offsets(publications: list[tuple[Cut, ...]]) -> dict[Partition, list[int]]:
    ends = {(cut.topic, cut.partition): cut.end_offset for cuts in publications for cut in cuts}
    return {partition: list(range(end)) for partition, end in ends.items() if end}


def published_count(files: SimulatedFiles, history: History, acknowledged: int) -> int:
    """How many publications a reader sees: all acknowledged ones, and perhaps the one under way."""
    if not files.is_directory(TABLE / names.SPARK_LOG):
        assert acknowledged == 0
        return 0
    found = read_offsets(files, TABLE)
    for seen in (acknowledged, acknowledged + 1):
        if found == expected_offsets(history.publications[:seen]):
            return seen
    raise AssertionError(f"{found} after {acknowledged} publications")


def check_going_on(files: SimulatedFiles, history: History, acknowledged: int) -> None:
    """A reader sees whole publications; recover, publish again what may be missing, then the next ones."""
    seen = published_count(files, history, acknowledged)
    clock = Clock(acknowledged)
    table = Table(files, TABLE, clock)
    check_delta_log(files)
    ends = expected_offsets(history.publications[:seen])
    assert {(t, p): n for t, parts in table.held.next_offsets.items() for p, n in parts.items()} == {
        partition: offsets[-1] + 1 for partition, offsets in ends.items()
    }
    newest = max(
        names.sequence_of(unquote(line["path"]).rsplit("/", 1)[1]) or 0 for line in listed(files, TABLE)
    )
    for path in files.walk(TABLE):
        assert not names.is_temporary(path.name)
        assert (names.sequence_of(path.name) or 0) <= newest
    numbers = range(acknowledged, min(acknowledged + 2, PUBLICATIONS))
    for number in numbers:
        clock.ms = Clock(number).ms
        published = table.publish(history.publications[number])
        assert (published.rows == 0) == (number < seen)
    assert published_count(files, history, numbers[-1] + 1) == numbers[-1] + 1
    check_delta_log(files)
    table.close()


def check_delta_log(files: SimulatedFiles) -> None:
    """It lists the rows that Spark's log lists."""
    found = offsets_in(delta_contents(files, TABLE))
    assert {partition: sorted(offsets) for partition, offsets in found.items()} == read_offsets(files, TABLE)


def test_the_history_has_merges_and_deletions(history: History) -> None:
    files = SimulatedFiles(history.disk)
    found = {line["path"].rsplit("/", 1)[1]: line["modificationTime"] for line in listed(files, TABLE)}
    assert all((time < 0) == name.startswith("_m%3D") for name, time in found.items())
    assert any(time < 0 for time in found.values())
    operations = {moment.operation for moment in history.moments}
    assert operations == {"create", "write", "sync", "rename", "delete", "make_directory"}
    assert read_offsets(files, TABLE) == expected_offsets(history.publications)


@pytest.mark.parametrize("mode", ["lost", "kept", "mixed"])
@pytest.mark.parametrize("publication", INTERESTING)
def test_a_crash_at_any_operation(history: History, publication: int, mode: str) -> None:
    moments = [moment for moment in history.moments if moment.acknowledged == publication]
    assert len(moments) > 5
    for seed, moment in enumerate(moments):
        check_going_on(crashed(moment.disk, mode, seed), history, publication)


class Fails:
    """Fails one operation, the `number`-th, in the way of its kind."""

    def __init__(self, number: int) -> None:
        self.left = number
        self.failed = ""

    def __call__(self, operation: str) -> None:
        self.left -= 1
        if self.left == -1:
            self.failed = operation
            failing_sync(operation)
            raise OSError(28, "No space left on device")


@pytest.mark.parametrize("publication", [1, COMPACT_WITH_MERGES, COMPACT_WITH_DELETIONS])
def test_any_operation_fails_once(history: History, publication: int) -> None:
    """The table is opened anew after an error, and goes on; an error of the upkeep only is none."""
    start = next(moment.disk for moment in history.moments if moment.acknowledged == publication)
    number = 0
    while True:
        files = crashed(start, "kept", 0)
        table = Table(files, TABLE, Clock(publication))
        files.before_operation = fails = Fails(number)
        try:
            table.publish(history.publications[publication])
            acknowledged = publication + 1
        except (OSError, FsyncError):
            acknowledged = publication
        finally:
            table.close()
        files.before_operation = lambda operation: None
        check_going_on(files, history, acknowledged)
        if not fails.failed:
            break
        number += 1
    assert number > 10
