"""A table by days: Spark reads little of what is not of the days that it is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow.compute
import pyarrow.parquet as parquet
import pytest

from faircopy.publish import compaction
from faircopy.publish.files import Files
from faircopy.publish.layout import Layout
from faircopy.publish.live_files import live_files
from faircopy.publish.table import Table
from faircopy.wire.records import NewRecord
from tests.unit.publish.published_log import GrowingLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAYS = 6
EACH = 20  # publications in a day
ROWS = 50
DAY_MS = 86_400_000
MIDNIGHT_MS = 20_000 * DAY_MS
BY_DAY = Layout(by_day=True)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The first publication of a day has half of its rows from the day before."""
    root = tmp_path_factory.mktemp("days")
    log = GrowingLog(Files(), root, [("orders", 0)])
    now_ms = MIDNIGHT_MS
    made = Table(Files(), root / "plain" / "orders", lambda: now_ms)
    for number in range(DAYS * EACH):
        now_ms = MIDNIGHT_MS + number * DAY_MS // EACH + 5
        times_ms = [now_ms - 10 + 10 * (row % 2) for row in range(ROWS)]
        log.append(("orders", 0), [NewRecord(b"%d" % time_ms * 20, None, time_ms) for time_ms in times_ms])
        made.publish(log.cut(), BY_DAY)
    made.close()
    yield root / "plain" / "orders"


def scanned(frame: Any) -> int:
    """How many rows the scan of a table gave to the rest of the query."""
    frame.collect()
    plan = frame._jdf.queryExecution().executedPlan()
    metrics = plan.toString() and find_metric(plan)
    assert metrics is not None
    return int(metrics)


def find_metric(plan: Any) -> int | None:
    """The output rows of the scan in a plan; stages of adaptive execution have plans of their own."""
    if re.match(r"(FileScan|Scan) parquet", plan.nodeName()) or "Scan parquet" in plan.nodeName():
        return int(plan.metrics().apply("numOutputRows").value())
    inner = [plan.children().apply(number) for number in range(plan.children().size())]
    if plan.nodeName() == "AdaptiveSparkPlan":
        inner = [plan.executedPlan()]
    elif hasattr(plan, "plan") and "QueryStage" in plan.nodeName():
        inner = [plan.plan()]
    return next((found for each in inner if (found := find_metric(each)) is not None), None)


def test_the_day_is_that_of_the_timestamp(spark: SparkSession, table: Path) -> None:
    frame = spark.read.parquet(str(table))
    assert frame.where("day <> cast(timestamp as date) or day is null").count() == 0
    assert frame.select("day").distinct().count() == DAYS + 1


def test_merged_files_have_the_rows_of_one_day(table: Path) -> None:
    """But for those of the first seconds after midnight, which were published then."""
    merged = [path for path in live_files(Files(), table) if path.name.startswith("_m=")]
    days = [set(parquet.ParquetFile(path).read(columns=["day"])["day"].to_pylist()) for path in merged]
    first = date(1970, 1, 1) + timedelta(MIDNIGHT_MS // DAY_MS)
    assert days == [{first + timedelta(n - 1), first + timedelta(n)} for n in range(DAYS - 1)]


def test_spark_skips_other_days(spark: SparkSession, table: Path) -> None:
    """It opens each file, and reads only the rows of files whose statistics may fit."""
    day = date(1970, 1, 1) + timedelta(MIDNIGHT_MS // DAY_MS + 2)
    frame = spark.read.parquet(str(table)).where(f"day = date'{day}'")
    assert frame.count() == EACH * ROWS
    assert scanned(frame) <= 2 * EACH * ROWS  # the day itself, and the next one, with its first rows
    assert scanned(spark.read.parquet(str(table))) == DAYS * EACH * ROWS


def test_readers_of_the_delta_log_skip_other_days(table: Path) -> None:
    """As Spark does: by the statistics in the footers of files."""
    day = date(1970, 1, 1) + timedelta(MIDNIGHT_MS // DAY_MS + 2)
    wanted = pyarrow.compute.field("day") == day
    fragments = list(deltalake.DeltaTable(table).to_pyarrow_dataset().get_fragments())
    assert len([1 for each in fragments if each.split_by_row_group(wanted)]) == 2
    assert sum(each.count_rows(wanted) for each in fragments) == EACH * ROWS


def test_a_day_has_one_merged_file(table: Path) -> None:
    assert compaction.MANY_FILES > EACH  # only the end of the day closes merges here
    assert len(live_files(Files(), table)) < DAYS + EACH + 2
