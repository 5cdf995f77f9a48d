"""An unmodified Spark reads plain tables: batch and stream, while they are published to and merged.

Each publication holds transactions over four partitions, two messages in each. So a reader that misses,
doubles or tears anything sees a transaction with other than eight rows, or offsets that are not contiguous.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from faircopy.publish import compaction
from faircopy.publish.files import Files
from faircopy.publish.relocate import relocate
from faircopy.publish.table import Table
from faircopy.publish.trimming import HOUR_MS, Keep, Upkeep
from faircopy.wire.batch import HEADER, HEADER_BYTES, read_header
from faircopy.wire.records import NewRecord, build_batch, with_crc
from tests.spark.query import finish
from tests.unit.publish.published_log import GrowingLog, Partition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS: list[Partition] = [("orders", 0), ("orders", 1), ("orders", 2), ("payments", 0)]
ROWS_OF_A_TRANSACTION = 8
START_MS = 1_790_000_000_000
PUBLICATION_MS = HOUR_MS  # as if one came each hour
FURTHEST_AHEAD = 30  # publications
LOOK_SECONDS = 0.5  # how often a query is looked after

Row = tuple[str, int, int, str]  # topic, partition, offset, txid


@pytest.fixture(autouse=True)
def small_merges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MANY_FILES", 4)


class Publisher:
    """Publishes transactions to one table, with a clock that jumps ahead with each publication."""

    def __init__(self, root: Path, name: str = "orders", topic: str | None = None) -> None:
        """`topic` is the only one, with one partition, if it is given."""
        self.directory = root / "plain" / name
        self.partitions = [(topic, 0)] if topic else PARTITIONS
        self.log = GrowingLog(Files(), root, self.partitions)
        self.published = 0
        self._table = self._open()

    @property
    def path(self) -> str:
        return str(self.directory)

    @property
    def table(self) -> Table:
        return self._table

    def _open(self) -> Table:
        return Table(Files(), self.directory, lambda: START_MS + self.published * PUBLICATION_MS)

    def restart(self) -> None:
        self._table.close()
        self._table = self._open()

    def publish(self, times: int = 1, transactions: int = 2) -> None:
        for _ in range(times):
            for number in range(transactions):
                txid = f"7.0.{self.published * transactions + number}"
                for partition in self.partitions:
                    self.log.append(partition, [NewRecord(b"value", b"key", START_MS)] * 2, txid)
            self._table.publish(self.log.cut())
            self.published += 1

    def drop_below(self, offset: int) -> None:
        """Drop the rows below an offset, in all partitions, as far as whole files go."""
        topics = {topic for topic, _ in self.partitions}
        firsts = dict.fromkeys(range(3), offset)
        self._table.tidy(Upkeep(tuple(Keep(topic, firsts) for topic in topics)))

    def close(self) -> None:
        self._table.close()

    @contextmanager
    def in_the_background(self, publications: int, readers: Readers) -> Iterator[threading.Thread]:
        """Publish, restarting now and then, not much faster than `readers` read."""

        def work() -> None:
            while self.published < publications and readers.wait_to_come_near(self.published):
                self.publish()
                if self.published % 50 == 0:
                    self.restart()

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield thread
        finally:
            readers.leave()
            thread.join()


class Readers:
    """How far the readers of a table have come, in publications, for others to wait for."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._read = 0
        self._have_left = False

    def come_to(self, publications: int) -> None:
        """They have read so many."""
        with self._changed:
            self._read = publications
            self._changed.notify_all()

    def leave(self) -> None:
        """Nobody reads any more."""
        with self._changed:
            self._have_left = True
            self._changed.notify_all()

    def wait_to_come_near(self, published: int) -> bool:
        """Wait until they are not far behind; False if they have left."""
        with self._changed:
            self._changed.wait_for(lambda: self._have_left or published < self._read + FURTHEST_AHEAD)
            return not self._have_left

    def wait_for(self, publications: int, query: Any) -> None:
        """Wait until they have read so many, by a query that runs."""
        with self._changed:
            while not self._changed.wait_for(lambda: self._read >= publications, LOOK_SECONDS):
                assert query.isActive, query.exception()


@pytest.fixture
def publisher(tmp_path: Path) -> Iterator[Publisher]:
    made = Publisher(tmp_path)
    yield made
    made.close()


def rows_of(frame: DataFrame) -> list[Row]:
    return [tuple(row) for row in frame.select("topic", "partition", "offset", "txid").collect()]


def check_whole(rows: Iterable[Row]) -> None:
    """No transaction is torn or doubled."""
    torn = {t: n for t, n in Counter(row[3] for row in rows).items() if n != ROWS_OF_A_TRANSACTION}
    assert not torn


def check_all(rows: list[Row], publications: int | None = None) -> None:
    """Whole transactions, and the offsets of each partition contiguous from 0, each once."""
    check_whole(rows)
    offsets: dict[Partition, list[int]] = {}
    for topic, partition, offset, _ in rows:
        offsets.setdefault((topic, partition), []).append(offset)
    for found in offsets.values():
        assert sorted(found) == list(range(len(found)))
    if publications is not None:
        assert len(rows) == publications * 2 * ROWS_OF_A_TRANSACTION


def merged_files(publisher: Publisher) -> int:
    return len(list(publisher.directory.glob("_m=*")))


def test_columns_and_values(spark: SparkSession, tmp_path: Path) -> None:
    publisher = Publisher(tmp_path, "a table, 100 % ü")
    messages = [
        NewRecord(b"value", b"key", START_MS, (("h", b"x"), ("null", None))),
        NewRecord(None, None, START_MS + 1),
        NewRecord(b"", b"", 0),
    ]
    publisher.log.append(("orders", 1), messages, "7.0.1")
    publisher.publish(transactions=0)
    frame = spark.read.parquet(publisher.path)
    assert [(field.name, field.dataType.simpleString()) for field in frame.schema] == [
        ("key", "binary"),
        ("value", "binary"),
        ("topic", "string"),
        ("partition", "int"),
        ("offset", "bigint"),
        ("timestamp", "timestamp"),
        ("timestampType", "int"),
        ("headers", "array<struct<key:string,value:binary>>"),
        ("txid", "string"),
    ]
    first, second, third = (row.asDict(recursive=True) for row in frame.orderBy("offset").collect())
    assert first == {
        "key": b"key",
        "value": b"value",
        "topic": "orders",
        "partition": 1,
        "offset": 0,
        "timestamp": naive(START_MS),
        "timestampType": 0,
        "headers": [{"key": "h", "value": b"x"}, {"key": "null", "value": None}],
        "txid": "7.0.1",
    }
    assert (second["key"], second["value"], second["headers"]) == (None, None, None)
    assert (third["key"], third["value"]) == (b"", b"")
    assert frame.where("offset = 1 and timestamp > '2000-01-01'").count() == 1
    publisher.close()


def naive(timestamp_ms: int) -> datetime:
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).astimezone().replace(tzinfo=None)


def test_timestamps_that_would_overflow_in_spark(spark: SparkSession, publisher: Publisher) -> None:
    batch = build_batch([NewRecord(b"value")])
    for number, timestamp_ms in enumerate([2**62, -(2**62), 2**63 - 1, 253_402_300_800_000]):
        header = read_header(batch)._replace(base_offset=number, base_timestamp_ms=timestamp_ms)
        publisher.log.append_batch(("orders", 0), with_crc(HEADER.pack(*header) + batch[HEADER_BYTES:]), 1)
    publisher.publish(transactions=0)
    times = spark.read.parquet(publisher.path).selectExpr("unix_millis(timestamp) as ms").collect()
    last_ms = 253_402_300_799_999
    assert [row.ms for row in times] == [last_ms, -1, last_ms, last_ms]


def test_an_empty_table(spark: SparkSession, publisher: Publisher) -> None:
    assert spark.read.parquet(publisher.path).count() == 0
    publisher.publish()
    assert spark.read.parquet(publisher.path).count() == 2 * ROWS_OF_A_TRANSACTION


def test_batch_reads_while_files_are_published_and_merged(spark: SparkSession, publisher: Publisher) -> None:
    """0 missing, 0 duplicate, 0 partial, in every read; the publisher restarts in between."""
    read: list[int] = []
    readers = Readers()
    publisher.publish()
    with publisher.in_the_background(150, readers) as publishing:
        while publishing.is_alive():
            before = publisher.published
            rows = rows_of(spark.read.parquet(publisher.path))
            check_all(rows)
            read.append(len(rows) // (2 * ROWS_OF_A_TRANSACTION))
            assert before <= read[-1] <= publisher.published + 1
            readers.come_to(read[-1])
    check_all(rows_of(spark.read.parquet(publisher.path)), 150)
    assert merged_files(publisher) > 1 and len(read) > 3


class Sink:
    """What a stream has delivered. A batch that is done again after a restart replaces itself."""

    def __init__(self, spark: SparkSession, publisher: Publisher, checkpoint: Path, **options: Any) -> None:
        self._frame = (
            spark.readStream.schema(spark.read.parquet(publisher.path).schema)
            .options(**options)
            .parquet(publisher.path)
        )
        self._checkpoint = checkpoint
        self._batches: dict[int, list[Row]] = {}
        self.readers = Readers()

    @property
    def rows(self) -> list[Row]:
        return [row for batch in list(self._batches.values()) for row in batch]

    def start(self, **trigger: Any) -> Any:
        writer = self._frame.writeStream.foreachBatch(self._take)
        return writer.option("checkpointLocation", str(self._checkpoint)).trigger(**trigger).start()

    def drain(self) -> None:
        """Run until all that is there now has been delivered."""
        finish(self.start(availableNow=True))

    def _take(self, frame: DataFrame, batch: int) -> None:
        rows = rows_of(frame)
        check_whole(rows)
        self._batches[batch] = rows
        self.readers.come_to(len(self.rows) // (2 * ROWS_OF_A_TRANSACTION))


def test_a_stream_restarted_while_files_are_published_and_merged(
    spark: SparkSession, publisher: Publisher, tmp_path: Path
) -> None:
    """0 missing, 0 duplicate, 0 partial, over two restarts from the checkpoint."""
    publisher.publish()
    sink = Sink(spark, publisher, tmp_path / "checkpoint")
    with publisher.in_the_background(160, sink.readers):
        for until in (50, 100, 160):
            query = sink.start(processingTime="0 seconds")
            sink.readers.wait_for(until, query)
            query.stop()
    check_all(sink.rows, 160)
    assert merged_files(publisher) > 1
    sink.drain()
    check_all(sink.rows, 160)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"maxFilesPerTrigger": 5},
    {"maxBytesPerTrigger": 20_000},
    {"maxFileAge": "1000d"},
    {"maxFileAge": "10s", "maxFilesPerTrigger": 7},
    {"latestFirst": "true"},
    {"latestFirst": "true", "maxFilesPerTrigger": 5},
]


def test_streams_before_between_and_after_merges(
    spark: SparkSession, publisher: Publisher, tmp_path: Path
) -> None:
    """However a stream takes files, and whenever it begins: each row comes once."""
    publisher.publish(1)
    running = [Sink(spark, publisher, tmp_path / f"early-{n}", **chosen) for n, chosen in enumerate(OPTIONS)]
    for publications in (17, 50):
        publisher.publish(publications - publisher.published)
        for sink in running:
            sink.drain()
            check_all(sink.rows, publications)
    new = [Sink(spark, publisher, tmp_path / f"late-{n}", **chosen) for n, chosen in enumerate(OPTIONS)]
    assert merged_files(publisher) > 5
    for sink in new:
        sink.drain()
        check_all(sink.rows, 50)


def test_a_stream_that_stood_still_while_all_was_merged(
    spark: SparkSession, publisher: Publisher, tmp_path: Path
) -> None:
    """With the former horizon it lost rows silently: it took merged files for ones that it had read."""
    publisher.publish(5)
    sink = Sink(spark, publisher, tmp_path / "checkpoint")
    sink.drain()
    publisher.publish(200)  # 8 days, and 3 hours
    sink.drain()
    check_all(sink.rows, 205)


def test_rows_that_are_not_kept(spark: SparkSession, publisher: Publisher, tmp_path: Path) -> None:
    """A running stream misses nothing when older rows go; a new one and batch reads find what is left."""
    publisher.publish(30)
    running = Sink(spark, publisher, tmp_path / "running")
    running.drain()
    publisher.drop_below(80)
    publisher.publish(10)
    running.drain()
    check_all(running.rows, 40)
    new = Sink(spark, publisher, tmp_path / "new")
    new.drain()
    rows = rows_of(spark.read.parquet(publisher.path))
    assert sorted(rows) == sorted(new.rows) == sorted(row for row in running.rows if row in set(rows))
    first = min(offset for _, _, offset, _ in rows)
    assert 72 < first <= 80 and len(rows) == (160 - first) * len(PARTITIONS)
    publisher.drop_below(160)
    assert spark.read.parquet(publisher.path).count() == 0
    publisher.publish(1)
    running.drain()
    check_all(running.rows, 41)


def test_a_moved_table(spark: SparkSession, publisher: Publisher, tmp_path: Path) -> None:
    publisher.publish(5)
    publisher.close()
    publisher.directory = publisher.directory.rename(tmp_path / "moved")
    relocate(Files(), publisher.directory)
    publisher.restart()
    publisher.publish(5)
    check_all(rows_of(spark.read.parquet(publisher.path)), 10)


def test_a_moved_table_behind_a_link_keeps_its_streams(
    spark: SparkSession, publisher: Publisher, tmp_path: Path
) -> None:
    publisher.publish(5)
    sink = Sink(spark, publisher, tmp_path / "checkpoint")
    sink.drain()
    publisher.close()
    publisher.directory.symlink_to(publisher.directory.rename(tmp_path / "moved"))
    publisher.restart()
    publisher.publish(5)
    sink.drain()
    check_all(sink.rows, 10)
