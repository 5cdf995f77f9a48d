"""A streaming query that is killed in tests: lines of files, a file in each micro-batch, go into a topic."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.joint.asking import TOPIC

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINES = 50
OLD = 1_700_000_000
WAIT_SECONDS = 240


def make_input(directory: Path, files: int) -> list[str]:
    """Files, which become micro-batches in this order; returns all lines."""
    (directory / "input").mkdir()
    for file in range(files):
        path = directory / "input" / f"{file}.txt"
        path.write_text("\n".join(lines_of(file)) + "\n")
        os.utime(path, (OLD + file, OLD + file))  # Spark takes the oldest first
    return [line for file in range(files) for line in lines_of(file)]


def lines_of(file: int) -> list[str]:
    """The lines of one file."""
    return [f"{file}:{line}" for line in range(LINES)]


def start_query(spark: SparkSession, address: str, directory: Path, what: str = "plain") -> Any:
    """Start it, or go on from its checkpoint, until all files are written.

    `what` is "plain", "tasks fail" (the first attempt of each) or "staged" (tests/spark/staged.py).
    """
    from tests.spark.staged import DIRECTORY, StagedDataSource

    spark.dataSource.register(StagedDataSource)
    rows = (
        spark.readStream.schema("value string").option("maxFilesPerTrigger", 1).text(str(directory / "input"))
    )
    if what == "tasks fail":
        rows = rows.mapInArrow(fail_first(directory), "value string")
    return (
        rows.writeStream.format("staged" if what == "staged" else "faircopy")
        .option("kafka.bootstrap.servers", address)
        .option("topic", TOPIC)
        .option(DIRECTORY, str(directory))
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )


def finish(query: Any) -> None:
    """Wait for the end of a query. Raises what it failed with."""
    assert query.awaitTermination(WAIT_SECONDS), f"it did not end in {WAIT_SECONDS} s"


def fail_first(marks: Path) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A step of a job whose first attempt in each task fails, after it has passed on all rows."""

    def step(rows: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        yield from rows
        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber() == 0:
            (marks / f"{context.partitionId()}-{time.time_ns()}").touch()
            raise RuntimeError("this attempt fails on purpose")

    return step
