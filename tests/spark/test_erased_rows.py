"""After DeleteRecords in the middle of a publication: each remaining row once, whoever reads, and however."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import pytest

from faircopy.publish import compaction
from faircopy.publish.files import Files
from faircopy.publish.live_files import live_files
from faircopy.publish.trimming import Keep, Upkeep
from tests.spark.query import finish
from tests.spark.test_plain_tables import PARTITIONS, Publisher, Sink, rows_of
from tests.spark.test_readers import WAYS, Place, Way, check_way

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PUBLICATIONS = 30
ROWS = 4  # of each partition in a publication
FIRST = 61  # in the middle of publication 15; rows of orders-0 before are deleted
KEYS = [
    (*partition, offset)
    for partition in PARTITIONS
    for offset in range(FIRST if partition == ("orders", 0) else 0, PUBLICATIONS * ROWS)
]


def erase(publisher: Publisher) -> None:
    """As the broker does after DeleteRecords."""
    upkeep = Upkeep((Keep("orders", {0: FIRST}, deleted={0: FIRST}), Keep("payments")))
    while publisher.table.tidy(upkeep).waiting:
        pass


class PartSink(Sink):
    """A sink that takes transactions of which a part was deleted."""

    def _take(self, frame: DataFrame, batch: int) -> None:
        self._batches[batch] = rows_of(frame)


@pytest.fixture(scope="module")
def erased(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root = tmp_path_factory.mktemp("erased")
    (root / "one").mkdir()
    (root / "two").mkdir()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compaction, "MANY_FILES", 10)
        publisher, other = Publisher(root / "one"), Publisher(root / "two", topic="other")
        publisher.publish(PUBLICATIONS)
        other.publish(1)
        erase(publisher)
    yield Place(spark, publisher.directory, other.directory)
    publisher.close()
    other.close()


@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way.reader}: {way.how}")
def test_each_row_once_or_a_refusal(erased: Place, way: Way) -> None:
    check_way(way, erased, KEYS)


def test_the_files_are_of_all_kinds(erased: Place) -> None:
    assert any(path.name.startswith("_m=") for path in live_files(Files(), erased.table))
    found = deltalake.DeltaTable(erased.table).get_add_actions(flatten=True)
    assert sum(found.column("num_records").to_pylist()) == len(KEYS)


def test_streams(spark: SparkSession, tmp_path: Path) -> None:
    """One that has read rows before they were deleted finds nothing new; one that comes later, the rest."""
    publisher = Publisher(tmp_path)
    publisher.publish(PUBLICATIONS)
    before, half = (
        PartSink(spark, publisher, tmp_path / "before"),
        PartSink(spark, publisher, tmp_path / "half", maxFilesPerTrigger=5),
    )
    before.drain()
    finish(half.start(once=True))
    read = len(half.rows)
    erase(publisher)
    after = PartSink(spark, publisher, tmp_path / "after")
    publisher.publish(1)
    for sink in (before, half, after):
        sink.drain()
    more = [(*partition, PUBLICATIONS * ROWS + number) for partition in PARTITIONS for number in range(ROWS)]
    everything = [
        (*partition, offset) for partition in PARTITIONS for offset in range((PUBLICATIONS + 1) * ROWS)
    ]
    assert sorted(row[:3] for row in before.rows) == everything
    assert sorted(row[:3] for row in after.rows) == sorted([*KEYS, *more])
    found = sorted(row[:3] for row in half.rows)
    assert 0 < read < len(found) and len(set(found)) == len(found)
    assert set(KEYS) | set(more) <= set(found) <= set(everything)
    publisher.close()
