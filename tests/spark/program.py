"""A streaming query as a program of its own, so that tests can kill its driver: lines of files, a file in
each micro-batch, go into a topic.

    python -m tests.spark.program ADDRESS DIRECTORY WHAT MASTER

WHAT is "plain", "tasks fail" (the first attempt of each) or "staged" (tests/spark/staged.py). MASTER is
Spark's: its own threads, or a cluster, where a task that takes long gets a second attempt beside the first.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.broker_process import BrokerProcess, environment
from tests.joint.asking import TOPIC

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
FILES, LINES = 6, 50
RUN_SECONDS = 240.0
HERE = "local[2,4]"  # tasks have four attempts, as elsewhere
SPECULATION: dict[str, bool | float | int | str | None] = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.task.duration.threshold": "1s",
}


def make_input(directory: Path) -> list[str]:
    """Files, each of which becomes a micro-batch; returns all lines."""
    (directory / "input").mkdir()
    lines = [f"{file}:{line}" for file in range(FILES) for line in range(LINES)]
    for file in range(FILES):
        part = lines[file * LINES : (file + 1) * LINES]
        (directory / "input" / f"{file}.txt").write_text("\n".join(part) + "\n")
    return lines


def start(
    broker: BrokerProcess, directory: Path, what: str = "plain", master: str = HERE
) -> subprocess.Popen[bytes]:
    """Start the program; what Spark says goes to `spark.log` in its directory."""
    with (directory / "spark.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.spark.program", broker.address, str(directory), what, master],
            env=environment() | {"PYTHONPATH": str(ROOT)},
            cwd=ROOT,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a driver and all that it has started."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run(broker: BrokerProcess, directory: Path, what: str = "plain", master: str = HERE) -> None:
    """Run the program to its end."""
    process = start(broker, directory, what, master)
    try:
        process.wait(RUN_SECONDS)
        assert process.returncode == 0, (directory / "spark.log").read_text()[-4000:]
    finally:
        if process.returncode is None:
            kill(process)


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


def session(master: str) -> SparkSession:
    """A session with what starts tasks."""
    from pyspark.sql import SparkSession

    spark: SparkSession = (
        SparkSession.builder.master(master)
        .config(map=SPECULATION | {"spark.executorEnv.PYTHONPATH": str(ROOT)})
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def main(address: str, directory: Path, what: str, master: str) -> None:
    """Run the query until all files are written."""
    from tests.spark.staged import DIRECTORY, StagedDataSource

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = session(master)
    spark.dataSource.register(StagedDataSource)
    rows = (
        spark.readStream.schema("value string").option("maxFilesPerTrigger", 1).text(str(directory / "input"))
    )
    if what == "tasks fail":
        rows = rows.mapInArrow(fail_first(directory), "value string")
    query = (
        rows.writeStream.format("staged" if what == "staged" else "faircopy")
        .option("kafka.bootstrap.servers", address)
        .option("topic", TOPIC)
        .option(DIRECTORY, str(directory))
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
