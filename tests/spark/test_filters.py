"""Filters by each column, at the edges of its values and at nulls, in tables that readers leave files out of:
rows are found wherever they are.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import deltalake
import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pytest

from faircopy.publish import compaction, delta_log
from faircopy.publish.files import Files
from faircopy.publish.layout import Layout, TopicColumns
from faircopy.publish.table import Table
from faircopy.wire.records import NewRecord
from tests.spark.test_plain_tables import START_MS
from tests.spark.test_typed_tables import EVERYTHING
from tests.unit.publish.published_log import GrowingLog, Partition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS: list[Partition] = [("orders", 0), ("payments", 1)]
PUBLICATIONS = 24
LAYOUTS = [Layout(), Layout((TopicColumns("orders", EVERYTHING),), by_day=True)]
OPERATORS = {"=": operator.eq, "<=": operator.le, ">=": operator.ge}
ARRAYS = {"a", "o", "headers"}


class Filter(NamedTuple):
    """A comparison of a column with a value; with None, `=` asks for nulls, and `>=` for all others."""

    column: str
    operator: str
    value: Any

    @property
    def sql(self) -> str:
        """In SQL, with a question mark for the value."""
        if self.value is None:
            return f'"{self.column}" is {"" if self.operator == "=" else "not "}null'
        return f'"{self.column}" {self.operator} ?'

    def of(self, column: Any) -> Any:
        """On a column of a reader that has operators of Python."""
        if self.value is None:
            return column.is_null() if self.operator == "=" else ~column.is_null()
        return OPERATORS[self.operator](column, self.value)

    def fits(self, value: Any) -> bool:
        """Whether it takes this value."""
        if self.value is None or value is None:
            return self.value is None and (value is None) == (self.operator == "=")
        return bool(OPERATORS[self.operator](value, self.value))


def document(number: int) -> bytes:
    """Values that differ in what statistics of a column may get wrong: signs, lengths, microseconds."""
    return json.dumps(
        {
            "b": number % 2 == 0, "t": number - 12, "s": number * 100, "i": -number, "l": 2**62 + number,
            "f": number / 2, "d": 1e300 / (number + 1), "c": number * 1000.125,
            "n": "ü" * (number * 40) + chr(0x1F600 + number), "day_of": f"2024-01-{number + 1:02}",
            "at": f"1883-11-18T12:00:00.{number:03}456Z", "a": ["x"] * number, "o": {"x": number / 2},
        }
    ).encode()  # fmt: skip


def publish_all(table: Table, log: GrowingLog) -> None:
    """One partition has values and keys from the second publication on, the other one never."""
    for number in range(PUBLICATIONS):
        key, headers = (b"key%02d" % number, (("h", b"v"),)) if number % 3 else (None, ())
        values = [document(number), b"{" if number % 5 == 1 else b"{}"]
        records = [NewRecord(value, key, START_MS + number, headers) for value in values]
        log.append(PARTITIONS[0], records, f"7.0.{number}" if number % 4 else None)
        log.append(PARTITIONS[1], [NewRecord(b"", b"", START_MS)])
        table.publish(log.cut(), LAYOUTS[number > 0])


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("filters")
    directory = root / "plain" / "orders"
    log = GrowingLog(Files(), root, PARTITIONS)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compaction, "MANY_FILES", 8)
        patched.setattr(delta_log, "CHECKPOINT_INTERVAL", 16)
        made = Table(Files(), directory, lambda: START_MS)
        publish_all(made, log)
        made.close()
    return directory


@pytest.fixture(scope="module")
def rows(table: Path) -> pa.Table:
    """All rows, unfiltered."""
    found = deltalake.DeltaTable(table).to_pyarrow_table()
    assert len(found) == 3 * PUBLICATIONS
    return found


def filters(rows: pa.Table) -> Iterator[Filter]:
    """Each column's nulls, and its least, its largest and some other value."""
    for name in rows.column_names:
        yield from (Filter(name, each, None) for each in ("=", ">="))
        if name in ARRAYS:
            continue
        values = sorted({value for value in rows[name].to_pylist() if value is not None})
        for value in dict.fromkeys((values[0], values[len(values) // 2], values[-1])):
            yield from (Filter(name, each, value) for each in OPERATORS)


def dataset_of(table: Path) -> Callable[[Filter], int]:
    dataset = deltalake.DeltaTable(table).to_pyarrow_dataset()
    return lambda wanted: dataset.count_rows(filter=wanted.of(pc.field(wanted.column)))


def duckdb_of(table: Path, source: str) -> Callable[[Filter], int]:
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    if source == "dataset":
        connection.register("dataset", deltalake.DeltaTable(table).to_pyarrow_dataset())
    else:
        source = f"read_parquet('{table}/*.parquet', union_by_name=true)"

    def count(wanted: Filter) -> int:
        given = [] if wanted.value is None else [wanted.value]
        found = connection.execute(f"select count(*) from {source} where {wanted.sql}", given).fetchone()
        assert found is not None
        return int(found[0])

    return count


def polars_of(table: Path) -> Callable[[Filter], int]:
    frame = polars.scan_delta(str(table))
    return lambda wanted: frame.filter(wanted.of(polars.col(wanted.column))).select("offset").collect().height


def parquet_of(table: Path) -> Callable[[Filter], int]:
    dataset = pyarrow.dataset.dataset(table)
    return lambda wanted: dataset.count_rows(filter=wanted.of(pc.field(wanted.column)))


READERS: dict[str, Callable[[Path], Callable[[Filter], int]]] = {
    "delta-rs": dataset_of,
    "DuckDB over delta-rs": lambda table: duckdb_of(table, "dataset"),
    "DuckDB": lambda table: duckdb_of(table, "files"),
    "polars": polars_of,
    "pyarrow": parquet_of,
}


@pytest.mark.parametrize("reader", READERS)
def test_a_filter_finds_its_rows(table: Path, rows: pa.Table, reader: str) -> None:
    count = READERS[reader](table)
    wrong = {
        wanted: (found, expected)
        for wanted in filters(rows)
        if (found := count(wanted)) != (expected := sum(map(wanted.fits, rows[wanted.column].to_pylist())))
    }
    assert not wrong


def test_spark_finds_its_rows(spark: SparkSession, table: Path, rows: pa.Table) -> None:
    frame = spark.read.parquet(str(table))
    for wanted in filters(rows):
        if wanted.operator == "=":
            column = frame[f"`{wanted.column}`"]
            fitting = column.isNull() if wanted.value is None else column == wanted.value
            expected = sum(map(wanted.fits, rows[wanted.column].to_pylist()))
            assert frame.where(fitting).select("offset").count() == expected, wanted


def test_the_latest_time_is_found_to_the_microsecond(table: Path) -> None:
    """Times in a Delta log are milliseconds."""
    latest = datetime(1883, 11, 18, 12, 0, 0, (PUBLICATIONS - 1) * 1000 + 456, UTC)
    dataset = deltalake.DeltaTable(table).to_pyarrow_dataset()
    assert dataset.count_rows(filter=pc.field("at") == pa.scalar(latest, pa.timestamp("us", "UTC"))) == 1
