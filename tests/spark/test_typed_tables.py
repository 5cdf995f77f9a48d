"""Typed columns, as each reader sees them: the table had rows before it had a schema, and its schema grew."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import duckdb
import pandas
import polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

from faircopy.publish import compaction, delta_log
from faircopy.publish.files import Files
from faircopy.publish.layout import Layout, TopicColumns
from faircopy.publish.live_files import live_files
from faircopy.publish.table import Table
from faircopy.publish.table_columns import arrow_schema
from faircopy.settings.columns import parse_columns
from faircopy.wire.records import NewRecord
from tests.spark.query import finish
from tests.spark.test_plain_tables import START_MS
from tests.spark.test_readers import KEY, WAYS, Place, Way, asked_of_duckdb, check_way, files_of
from tests.unit.publish.published_log import GrowingLog, Partition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUBLICATIONS = 60
PARTITIONS: list[Partition] = [("orders", 0), ("payments", 1)]
FIRST = TopicColumns("orders", "id bigint, name string")
LATER = TopicColumns("orders", "id bigint, name string, at timestamp, tags array<string>")
LAYOUTS = [Layout(), Layout((FIRST,)), Layout((LATER,), by_day=True)]
EVERYTHING = (
    "b boolean, t tinyint, s smallint, i int, l bigint, f float, d double, c decimal(12,3), n string, "
    "day_of date, at timestamp, a array<string>, o struct<x: double, deep: array<struct<y: date>>>"
)


class Typed:
    """A table that is published to."""

    def __init__(self, root: Path, partitions: list[Partition]) -> None:
        self.directory = root / "plain" / "orders"
        self.log = GrowingLog(Files(), root, partitions)
        self.now_ms = START_MS
        self.table = Table(Files(), self.directory, lambda: self.now_ms)

    def publish(self, layout: Layout, *values: bytes) -> None:
        for partition in self.log.ends:
            self.log.append(partition, [NewRecord(value, b"key", self.now_ms) for value in values])
        self.table.publish(self.log.cut(), layout)
        self.now_ms += 1000


@pytest.fixture(scope="module")
def grown(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root = tmp_path_factory.mktemp("typed")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compaction, "MANY_FILES", 10)
        patched.setattr(delta_log, "CHECKPOINT_INTERVAL", 16)
        typed = Typed(root, PARTITIONS)
        for number in range(PUBLICATIONS):
            document = {"id": number, "name": f"n{number}", "at": "2024-01-01T00:00:00Z", "tags": ["t"]}
            typed.publish(LAYOUTS[number * 3 // PUBLICATIONS], json.dumps(document).encode(), b"{")
        (root / "U").mkdir()
        other = Typed(root / "U", [("other", 0)])
        other.publish(Layout(), b"value")
        other.table.close()
        typed.table.close()
    yield Place(spark, typed.directory, other.directory)


GROWN_WAYS = [
    Way(
        "DuckDB",
        "from read_parquet('T/*.parquet', union_by_name=true)",
        "right",
        lambda at: asked_of_duckdb(
            'select topic, partition, "offset", id from '
            f"read_parquet('{at.table}/*.parquet', union_by_name=true)"
        ),
    ),
    Way(
        "DuckDB",
        "from read_parquet([...], union_by_name=true)",
        "right",
        lambda at: asked_of_duckdb(
            f'select topic, partition, "offset", id from read_parquet({files_of(at)}, union_by_name=true)'
        ),
    ),
    Way(
        "polars",
        'scan_parquet("T/*.parquet", missing_columns="insert")',
        "right",
        lambda at: (
            polars.scan_parquet(f"{at.table}/*.parquet", missing_columns="insert")
            .select(KEY)
            .collect()
            .rows()
        ),
    ),
]


def test_there_are_files_of_all_kinds(grown: Place) -> None:
    columns = {tuple(pyarrow.parquet.read_schema(path).names) for path in live_files(Files(), grown.table)}
    merged = [path for path in live_files(Files(), grown.table) if path.name.startswith("_m=")]
    assert len(columns) == 3 and len(merged) > 3


@pytest.mark.parametrize("way", [*WAYS, *GROWN_WAYS], ids=lambda way: f"{way.reader}: {way.how}")
def test_each_row_once_or_a_refusal(grown: Place, way: Way) -> None:
    offsets = range(2 * PUBLICATIONS)
    check_way(way, grown, [(*partition, offset) for partition in PARTITIONS for offset in offsets])


def test_who_needs_an_option_to_find_all_columns(grown: Place) -> None:
    """The columns that all files have are found without it."""
    glob = f"{grown.table}/*.parquet"
    for source in (f"'{glob}'", str(files_of(grown))):
        with pytest.raises(duckdb.InvalidInputException, match="union_by_name"):
            asked_of_duckdb(f"select id from read_parquet({source})")
        ((found,),) = asked_of_duckdb(f"select count(id) from read_parquet({source}, union_by_name=true)")
        assert found == PUBLICATIONS * 2 // 3
    with pytest.raises(polars.exceptions.ColumnNotFoundError, match="missing_columns"):
        polars.scan_parquet(glob).select("id").collect()
    frame = polars.scan_parquet(glob, missing_columns="insert").select(polars.col("id").count())
    assert frame.collect().item() == PUBLICATIONS * 2 // 3


def frames_of(place: Place) -> dict[str, Callable[[], list[tuple[Any, ...]]]]:
    """How those readers find all columns that need no option for it."""
    wanted = [*KEY, "id", "name", "_corrupt_record"]

    def spark_rows(path: str) -> list[tuple[Any, ...]]:
        frame = place.spark.read.parquet(path).where("topic = 'orders'")
        return [tuple(row) for row in frame.select(*wanted, "tags", "day").collect()]

    def arrow_rows(table: pa.Table) -> list[tuple[Any, ...]]:
        found = zip(*(table[name].to_pylist() for name in [*wanted, "tags", "day"]), strict=True)
        return [row for row in found if row[0] == "orders"]

    return {
        "spark": lambda: spark_rows(str(place.table)),
        "spark glob": lambda: spark_rows(f"{place.table}/*.parquet"),
        "pyarrow": lambda: arrow_rows(pyarrow.parquet.read_table(place.table)),
        "dataset": lambda: arrow_rows(pyarrow.dataset.dataset(place.table).to_table()),
        "pandas": lambda: arrow_rows(pa.Table.from_pandas(pandas.read_parquet(place.table))),
        "delta-rs": lambda: arrow_rows(deltalake.DeltaTable(place.table).to_pyarrow_table()),
        "polars": lambda: arrow_rows(polars.read_delta(str(place.table)).to_arrow()),
    }


@pytest.mark.parametrize(
    "reader", ["spark", "spark glob", "pyarrow", "dataset", "pandas", "delta-rs", "polars"]
)
def test_who_finds_all_columns(grown: Place, reader: str) -> None:
    rows = sorted(frames_of(grown)[reader](), key=lambda row: row[2])
    a_third = 2 * PUBLICATIONS // 3
    for offset, row in enumerate(rows):
        number, is_bad, third = offset // 2, offset % 2, offset // a_third
        has_columns = third > 0 and not is_bad
        identity = row[3] if row[3] == row[3] else None  # pandas has NaN
        assert identity == (number if has_columns else None)
        assert row[4] == (f"n{number}" if has_columns else None)
        assert row[5] == ("{" if third > 0 and is_bad else None)
        assert (None if row[6] is None else list(row[6])) == (["t"] if third > 1 and not is_bad else None)
        assert row[7] == (date(2026, 9, 21) if third > 1 else None)
    assert len(rows) == 2 * PUBLICATIONS


def test_streams_find_all_columns(grown: Place) -> None:
    found: list[Any] = []
    frame = grown.spark.readStream.schema(grown.spark.read.parquet(str(grown.table)).schema)
    query = (
        frame.parquet(str(grown.table))
        .where("id is not null and topic = 'orders'")
        .writeStream.foreachBatch(lambda batch, _: found.extend(batch.select("id").collect()))
        .trigger(availableNow=True)
        .start()
    )
    finish(query)
    assert sorted(row.id for row in found) == list(range(PUBLICATIONS // 3, PUBLICATIONS))


def test_types_are_sparks(spark: SparkSession, tmp_path: Path) -> None:
    """The schema is the same as in Spark, and values are what Spark's own reader of JSON finds."""
    typed = Typed(tmp_path, [("orders", 0)])
    document = {
        "b": True, "t": -128, "s": 32767, "i": -5, "l": 2**62, "f": 0.5, "d": 1e300, "c": 123456789.125,
        "n": "ü\u0000}x{", "day_of": "1582-10-04", "at": "1883-11-18T12:00:00.123456Z", "a": ["x", None],
        "o": {"x": 1.5, "deep": [{"y": "2024-02-29"}, None]},
    }  # fmt: skip
    old = {"day_of": "0001-01-01", "at": "0003-01-01T00:00:00Z"}
    values = [json.dumps(each).encode() for each in (document, old, {})]
    typed.publish(Layout((TopicColumns("orders", EVERYTHING),)), *values, b"null")
    typed.table.close()
    frame = spark.read.parquet(str(typed.directory))
    names = [column.name for column in parse_columns(EVERYTHING)]
    assert frame.select(*names).schema == spark.createDataFrame([], EVERYTHING).schema
    rows = frame.select(*names).collect()
    own = spark.read.schema(EVERYTHING).json(
        spark.sparkContext.parallelize([value.decode() for value in values])
    )
    assert rows[:3] == own.collect()
    assert rows[0].c == Decimal("123456789.125") and rows[3].asDict() == dict.fromkeys(names)
    assert frame.where("day_of = '0001-01-01' and at < '1600-01-01'").count() == 1
    assert deltalake.DeltaTable(typed.directory).to_pyarrow_table()["at"][0].as_py() == datetime(
        1883, 11, 18, 12, 0, 0, 123456, UTC
    )


def test_the_arrow_types_are_those_of_the_source(spark: SparkSession) -> None:
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = spark.createDataFrame([], EVERYTHING).schema
    assert to_arrow_schema(schema, timezone="UTC").equals(arrow_schema(parse_columns(EVERYTHING)))
