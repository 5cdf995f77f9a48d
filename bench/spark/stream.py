"""The Spark job of the benchmark: stock PySpark, which gets commands as lines of JSON, and answers each with
a line.

    python stream.py SCRATCH_DIRECTORY JARS

{"count": SOURCE}            -> {"shown": rows, "aborted_shown": rows}
{"read": SOURCE}             -> {"rows": rows, "seconds": seconds}
{"load": SOURCE}             -> {"seconds": seconds}, for a batch
{"write": SINK}              -> {"seconds": seconds}, for a batch of rows
{"watch": SOURCE}            -> {}, while a stream keeps running
{"until": committed rows}    -> {"arrivals": [[nanoseconds of arrival, [nanoseconds of each send]]]}, and ends

A SOURCE is {"format": "kafka", "faircopy" or "parquet", "options": {...}}, a SINK the same with "rows", how
many, and their "kind", as in bench/spark/rows.py. A value that is read begins with one letter, c for a
message of a transaction that commits and a for one that aborts, and 19 digits, the nanoseconds of its send:
on the monotonic clock, which is the same for all processes of a machine.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from typing import Any

from pyspark.sql import SparkSession

from bench.spark.counting_sink import CountingDataSource
from bench.spark.plain_sink import PlainDataSource
from bench.spark.rows import KEY, KINDS
from faircopy.spark.data_source import FaircopyDataSource

UNTIL_SECONDS = 60.0

# As in docs/PLAIN_TABLES.md. Spark's Kafka source has its own schema.
COLUMNS = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset LONG, timestamp TIMESTAMP, "
    "timestampType INT, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, txid STRING"
)


class Job:
    """Answers commands; each method is one."""

    def __init__(self, spark: SparkSession, scratch: str) -> None:
        self._spark = spark
        self._scratch = scratch
        self._query: Any = None
        self._kept: Any = None
        self._kept_as: tuple[int, str] | None = None
        self._arrivals: list[tuple[int, list[int]]] = []

    def _stream(self, source: dict[str, Any]) -> Any:
        """A new stream's writer, which has read nothing yet."""
        reader = self._spark.readStream.format(source["format"]).options(**source["options"])
        if source["format"] == "parquet":
            reader = reader.schema(COLUMNS)
        checkpoint = tempfile.mkdtemp(prefix="checkpoint-", dir=self._scratch)
        return reader.load().writeStream.option("checkpointLocation", checkpoint)

    def count(self, source: dict[str, Any]) -> dict[str, int]:
        """Read all rows, and count them."""
        totals = {"shown": 0, "aborted_shown": 0}

        def take(batch: Any, _number: int) -> None:
            row = batch.selectExpr(
                "count(*) as shown", "count_if(substring(value, 1, 1) = X'61') as aborted"
            ).first()
            totals["shown"] += row["shown"]
            totals["aborted_shown"] += row["aborted"]

        self._stream(source).foreachBatch(take).trigger(availableNow=True).start().awaitTermination()
        return totals

    def read(self, source: dict[str, Any]) -> dict[str, float]:
        """Read all columns of all rows, and drop them. The time is that of micro-batches, without start."""
        query = self._stream(source).format("noop").trigger(availableNow=True).start()
        query.awaitTermination()
        batches = query.recentProgress
        milliseconds = sum(batch["durationMs"]["triggerExecution"] for batch in batches)
        return {"rows": sum(batch["numInputRows"] for batch in batches), "seconds": milliseconds / 1000}

    def load(self, source: dict[str, Any]) -> dict[str, float]:
        """Read all columns of all rows in a batch, and drop them."""
        reader = self._spark.read.format(source["format"]).options(**source["options"])
        if source["format"] == "parquet":
            reader = reader.schema(COLUMNS)
        began = time.monotonic()
        reader.load().write.format("noop").mode("overwrite").save()
        return {"seconds": time.monotonic() - began}

    def write(self, sink: dict[str, Any]) -> dict[str, float]:
        """Write rows in a batch. They are made before, and kept in memory."""
        rows = self._rows(sink["rows"], sink["kind"])
        began = time.monotonic()
        rows.write.format(sink["format"]).mode("append").options(**sink["options"]).save()
        return {"seconds": time.monotonic() - began}

    def _rows(self, count: int, kind: str) -> Any:
        """Rows in memory; the last ones are kept."""
        if self._kept_as != (count, kind):
            if self._kept is not None:
                self._kept.unpersist(blocking=True)
            made = self._spark.range(0, count, 1, 2).selectExpr(f"{KEY} key", f"{KINDS[kind].value} value")
            self._kept, self._kept_as = made.persist(), (count, kind)
            self._kept.count()
        return self._kept

    def watch(self, source: dict[str, Any]) -> dict[str, Any]:
        """Note when the driver has the rows of each micro-batch."""

        def take(batch: Any, _number: int) -> None:
            committed = batch.where("substring(value, 1, 1) = X'63'")
            rows = committed.selectExpr(
                "cast(cast(substring(value, 2, 19) as string) as long) as sent"
            ).collect()
            self._arrivals.append((time.monotonic_ns(), [row["sent"] for row in rows]))

        self._arrivals = []
        self._query = self._stream(source).foreachBatch(take).start()
        return {}

    def until(self, committed: int) -> dict[str, Any]:
        """Wait for `committed` rows since `watch`; the answer has fewer if they do not arrive in time."""
        deadline = time.monotonic() + UNTIL_SECONDS
        while sum(len(sent) for _, sent in self._arrivals) < committed and time.monotonic() < deadline:
            time.sleep(0.05)
        self._query.stop()
        return {"arrivals": self._arrivals}


def main(scratch: str, jars: str) -> None:
    """Serve requests from standard input until it ends; checkpoints are put below `scratch`."""
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("faircopy benchmark")
        .config("spark.jars", jars)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    for source in (FaircopyDataSource, PlainDataSource, CountingDataSource):
        spark.dataSource.register(source)
    job = Job(spark, scratch)
    for line in sys.stdin:
        [(command, argument)] = json.loads(line).items()
        print(json.dumps(getattr(job, command)(argument)), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
