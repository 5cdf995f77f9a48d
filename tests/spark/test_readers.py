"""What each way to read a plain table gives: all rows, each once, or a refusal; never something else.

The table in docs/PLAIN_TABLES.md is made from WAYS. The plain table here has merged files, small files that
they cover, small files that nothing covers yet, and a checkpoint of its Delta log.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import deltalake
import duckdb
import pandas
import polars
import pyarrow.dataset
import pyarrow.parquet
import pytest

from faircopy.publish import compaction, delta_log
from faircopy.publish.files import Files
from faircopy.publish.live_files import live_files
from tests.spark.query import finish
from tests.spark.test_plain_tables import PARTITIONS, Publisher

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCUMENT = Path(__file__).parents[2] / "docs" / "PLAIN_TABLES.md"
PUBLICATIONS = 70
RIGHT = "right"

Key = tuple[str, int, int]  # topic, partition, offset
KEY = ["topic", "partition", "offset"]


class Place(NamedTuple):
    """A plain table, beside another one, and a Spark session."""

    spark: SparkSession
    table: Path
    other: Path


class Way(NamedTuple):
    """A way to read: who does it, how, what it gives, and the doing, which returns the keys of rows.

    `outcome` is "right", or why it is refused.
    """

    reader: str
    how: str
    outcome: str
    read: Callable[[Place], Any]


def of_arrow(read: Callable[[Place], Any]) -> Callable[[Place], list[Key]]:
    def keys(place: Place) -> list[Key]:
        rows = read(place)
        return list(zip(*(rows[name].to_pylist() for name in KEY), strict=True))

    return keys


def of_frame(read: Callable[[Place], Any]) -> Callable[[Place], list[Key]]:
    return lambda place: list(zip(*(list(read(place)[name]) for name in KEY), strict=True))


def of_stream(place: Place, path: str) -> list[Key]:
    found: list[Key] = []

    def take(frame: Any, _batch: int) -> None:
        found.extend(tuple(row) for row in frame.select(*KEY).collect())

    stream = place.spark.readStream.schema(place.spark.read.parquet(str(place.table)).schema).parquet(path)
    query = stream.writeStream.foreachBatch(take).trigger(availableNow=True).start()
    finish(query)
    return found


def files_of(place: Place) -> list[str]:
    """What `faircopy tables files` prints."""
    return [str(path) for path in live_files(Files(), place.table)]


MIXED = "refused: other files are in the directory"
SUBDIRECTORIES = "refused: it would take the Delta log for data"


def parquet_of_spark(how: str, *patterns: str, outcome: str = RIGHT, **options: Any) -> Way:
    """spark.read.parquet; in a pattern, T is the table, and U another one."""

    def read(place: Place) -> list[Key]:
        paths = [each.replace("T", str(place.table)).replace("U", str(place.other)) for each in patterns]
        frame = place.spark.read.options(**options).parquet(*paths).where("topic <> 'other'")
        return [tuple(row) for row in frame.select(*KEY).collect()]

    return Way("Spark", how, outcome, read)


def asked_of_duckdb(query: str) -> Any:
    relation = duckdb.sql(query)
    assert relation is not None
    return relation.fetchall()


def parquet_of_duckdb(pattern: str, outcome: str = RIGHT) -> Way:
    """read_parquet; whatever is refused must be refused even if only the rows are counted."""

    def read(place: Place) -> Any:
        columns = 'topic, partition, "offset"' if outcome == RIGHT else "count(*)"
        source = f"'{pattern}'".replace("T", str(place.table))
        return asked_of_duckdb(f"select {columns} from read_parquet({source})")

    return Way("DuckDB", f"from read_parquet('{pattern}')", outcome, read)


def parquet_of_polars(pattern: str, outcome: str = RIGHT) -> Way:
    def read(place: Place) -> Any:
        frame = polars.scan_parquet(pattern.replace("T", str(place.table)))
        if outcome != RIGHT:
            return frame.select(polars.len()).collect()
        return frame.select(KEY).collect().rows()

    return Way("polars", f'scan_parquet("{pattern}"), read_parquet', outcome, read)


WAYS = [
    parquet_of_spark('spark.read.parquet("T")', "T"),
    Way(
        "Spark",
        "select * from parquet.[T]",
        RIGHT,
        lambda at: [
            tuple(row)
            for row in at.spark.sql(f"select topic, partition, offset from parquet.`{at.table}`").collect()
        ],
    ),
    parquet_of_spark('spark.read.parquet("T", "U")', "T", "U"),
    parquet_of_spark('spark.read.parquet("T*")', "T*"),
    parquet_of_spark('spark.read.parquet("T/*.parquet")', "T/*.parquet"),
    Way(
        "Spark",
        'spark.read.parquet("T/*")',
        SUBDIRECTORIES,
        lambda at: at.spark.read.parquet(f"{at.table}/*").count(),
    ),
    parquet_of_spark('spark.read.option("mergeSchema", True).parquet("T")', "T", mergeSchema=True),
    parquet_of_spark(
        'spark.read.option("recursiveFileLookup", True).parquet("T")', "T", recursiveFileLookup=True
    ),
    parquet_of_spark(
        'spark.read.option("modifiedAfter", ...).parquet("T")',
        "T",
        outcome="refused",
        modifiedAfter="2020-01-01T00:00:00",
    ),
    Way(
        "Spark",
        'spark.readStream.schema(...).parquet("T")',
        RIGHT,
        lambda at: of_stream(at, str(at.table)),
    ),
    Way(
        "Spark",
        'spark.readStream.schema(...).parquet("T*")',
        RIGHT,
        lambda at: of_stream(at, f"{at.table}*"),
    ),
    Way("pandas", 'read_parquet("T")', RIGHT, of_frame(lambda at: pandas.read_parquet(at.table))),
    Way(
        "pyarrow", 'parquet.read_table("T")', RIGHT, of_arrow(lambda at: pyarrow.parquet.read_table(at.table))
    ),
    Way(
        "pyarrow",
        'dataset.dataset("T")',
        RIGHT,
        of_arrow(lambda at: pyarrow.dataset.dataset(at.table).to_table()),
    ),
    parquet_of_duckdb("T/*.parquet"),
    parquet_of_duckdb("T/*", MIXED),
    parquet_of_duckdb("T", SUBDIRECTORIES),
    parquet_of_duckdb("T/**/*.parquet", SUBDIRECTORIES),
    Way(
        "DuckDB",
        "from read_parquet([what faircopy tables files prints])",
        RIGHT,
        lambda at: asked_of_duckdb(f'select topic, partition, "offset" from read_parquet({files_of(at)})'),
    ),
    parquet_of_polars("T/*.parquet"),
    parquet_of_polars("T", MIXED),
    parquet_of_polars("T/**/*.parquet", SUBDIRECTORIES),
    Way(
        "polars", 'scan_delta("T"), read_delta', RIGHT, of_frame(lambda at: polars.read_delta(str(at.table)))
    ),
    Way(
        "delta-rs",
        'DeltaTable("T")',
        RIGHT,
        of_arrow(lambda at: deltalake.DeltaTable(at.table).to_pyarrow_table()),
    ),
]


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root = tmp_path_factory.mktemp("readers")
    (root / "one").mkdir()
    (root / "two").mkdir()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compaction, "MANY_FILES", 10)
        patched.setattr(delta_log, "CHECKPOINT_INTERVAL", 16)
        publisher, other = Publisher(root / "one"), Publisher(root / "two", topic="other")
        publisher.publish(PUBLICATIONS)
        other.publish(1)
    yield Place(spark, publisher.directory, other.directory)
    publisher.close()
    other.close()


def test_the_table_has_files_of_all_kinds(place: Place) -> None:
    files = live_files(Files(), place.table)
    assert 3 < len([path for path in files if path.name.startswith("_m=")]) < len(files) < PUBLICATIONS
    assert list((place.table / "_delta_log").glob("*.checkpoint.parquet"))


@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way.reader}: {way.how}")
def test_each_row_once_or_a_refusal(place: Place, way: Way) -> None:
    rows = PUBLICATIONS * 4
    check_way(way, place, [(*partition, offset) for partition in PARTITIONS for offset in range(rows)])


def check_way(way: Way, place: Place, expected: list[Key]) -> None:
    """It gives these keys, each once, or its reader refuses to read; another error is none of a reader."""
    if way.outcome == RIGHT:
        assert sorted(row[:3] for row in way.read(place)) == sorted(expected)
        return
    with pytest.raises(errors_of(way.reader)):
        way.read(place)


def errors_of(reader: str) -> tuple[type[Exception], ...]:
    """What a reader raises about what it can't read."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    errors: dict[str, tuple[type[Exception], ...]] = {
        "Spark": (PySparkException, Py4JJavaError),  # PySpark has no names for some errors
        "DuckDB": (duckdb.Error,),
        "polars": (polars.exceptions.PolarsError,),
    }
    return errors[reader]


def test_the_delta_log_says_how_many_rows_files_have(place: Place) -> None:
    """And nothing of their columns: delta-rs would need to know all of them."""
    actions = deltalake.DeltaTable(place.table).get_add_actions(flatten=True)
    found = {name: actions.column(name).to_pylist() for name in actions.schema.names}
    assert sum(found["num_records"]) == PUBLICATIONS * 4 * len(PARTITIONS)
    bounds = [name for name in found if name.startswith(("min.", "max.", "null_count."))]
    assert not any(value is not None for name in bounds for value in found[name])


def test_others_can_not_write(place: Place) -> None:
    with pytest.raises(Exception, match="faircopyWritesAlone"):
        deltalake.write_deltalake(
            place.table, deltalake.DeltaTable(place.table).to_pyarrow_table(), mode="append"
        )


def test_the_document_says_the_same() -> None:
    rows = [f"| {way.reader} | `{way.how}` | {way.outcome} |" for way in WAYS]
    written = re.findall(r"^\| .*\| (?:right|refused)[^|]*\|$", DOCUMENT.read_text(), re.MULTILINE)
    assert written == rows
