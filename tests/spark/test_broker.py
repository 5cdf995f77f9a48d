"""An unmodified Spark, in batch and in stream, on the plain tables of a broker that is killed meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException, Producer

from tests.broker_process import BrokerProcess, eventually
from tests.spark.query import WAIT_SECONDS
from tests.spark.test_source import make_topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTS = 6
CALL_SECONDS = 30  # longer than a broker is away


class Writer(threading.Thread):
    """Commits transactions over both partitions of a topic, aborts some, and starts anew when fenced."""

    def __init__(self, broker: BrokerProcess) -> None:
        super().__init__(daemon=True)
        self._broker = broker
        self.is_over = threading.Event()
        self.acked: list[int] = []
        self.aborted: list[int] = []
        self._number = 0

    def run(self) -> None:
        while not self.is_over.is_set():
            try:
                self._write()
            except KafkaException:
                self.is_over.wait(0.05)

    def _write(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._broker.address,
                "transactional.id": "spark/1",
                "linger.ms": 0,
                "log_level": 0,
            }
        )
        producer.init_transactions(CALL_SECONDS)
        while not self.is_over.wait(0.02):
            self._number += 1
            producer.begin_transaction()
            for part in range(PARTS):
                producer.produce("orders", f"{self._number}:{part}", partition=part % 2)
            if self._number % 5 == 0:
                producer.flush(CALL_SECONDS)
                producer.abort_transaction(CALL_SECONDS)
                self.aborted.append(self._number)
            else:
                producer.commit_transaction(CALL_SECONDS)
                self.acked.append(self._number)


def has_acked(writer: Writer, more_than: int) -> bool:
    return len(writer.acked) > more_than


def check(values: list[str], writer: Writer) -> None:
    """Each row once, whole transactions, none that was aborted."""
    assert len(values) == len(set(values))
    parts: dict[int, int] = {}
    for value in values:
        number = int(value.split(":")[0])
        parts[number] = parts.get(number, 0) + 1
    assert set(parts.values()) <= {PARTS}
    assert not set(parts) & set(writer.aborted)


def values_of(frame: DataFrame) -> list[str]:
    return [row.value for row in frame.selectExpr("cast(value as string) as value").collect()]


class Stream:
    """A stream into memory. A batch that is done again after a restart replaces itself."""

    def __init__(self, spark: SparkSession, table: str, checkpoint: Path) -> None:
        self._rows = spark.readStream.schema(spark.read.parquet(table).schema).parquet(table)
        self._checkpoint = checkpoint
        self._batches: dict[int, list[str]] = {}

    @property
    def values(self) -> list[str]:
        return [value for values in list(self._batches.values()) for value in values]

    def has_more_than(self, values: int) -> bool:
        return len(self.values) > values

    def start(self) -> Any:
        writer = self._rows.writeStream.foreachBatch(self._take)
        return writer.option("checkpointLocation", str(self._checkpoint)).start()

    def _take(self, batch: DataFrame, number: int) -> None:
        self._batches[number] = values_of(batch)


@contextmanager
def writing(broker: BrokerProcess) -> Iterator[Writer]:
    """A writer that has ended when this does."""
    writer = Writer(broker)
    writer.start()
    try:
        yield writer
    finally:
        writer.is_over.set()
        writer.join()


def test_batch_and_stream_over_kills(spark: SparkSession, tmp_path: Path) -> None:
    settings = ("plain.interval.ms=100", "checkpoint.bytes=65536")
    with BrokerProcess(tmp_path, *settings) as broker:
        make_topics(broker, "orders")
        table = str(broker.data_directory / "plain" / "orders")
        eventually(lambda: (Path(table) / "_spark_metadata" / "32").exists(), WAIT_SECONDS)
        stream = Stream(spark, table, tmp_path / "check")
        query = stream.start()
        with writing(broker) as writer:
            for round_ in range(3):
                eventually(partial(has_acked, writer, len(writer.acked) + 15), WAIT_SECONDS)
                check(values_of(spark.read.parquet(table)), writer)
                broker.restart()
                if round_ == 1:
                    query = restart(stream, query)
        eventually(lambda: are_published(writer, values_of(spark.read.parquet(table))), WAIT_SECONDS)
        eventually(lambda: has_all(stream, query, values_of(spark.read.parquet(table))), WAIT_SECONDS)
        query.stop()
        check(stream.values, writer)


def restart(stream: Stream, query: Any) -> Any:
    """Stop a query in the middle of what it does, once it has delivered more, and go on from there."""
    eventually(partial(stream.has_more_than, len(stream.values)), WAIT_SECONDS)
    query.stop()
    return stream.start()


def has_all(stream: Stream, query: Any, values: list[str]) -> bool:
    """Whether a stream has delivered all that is in a table, and nothing else."""
    assert query.isActive, query.exception()
    return sorted(stream.values) == sorted(values)


def are_published(writer: Writer, values: list[str]) -> bool:
    """Whether all that was acknowledged is in a table."""
    return set(writer.acked) <= {int(value.split(":")[0]) for value in values}
