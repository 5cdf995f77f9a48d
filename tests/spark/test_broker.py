"""An unmodified Spark, in batch and in stream, on the plain tables of a broker that is killed meanwhile."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException, Producer

from tests.broker_process import BrokerProcess, eventually
from tests.crash.test_plain_tables import make_topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTS = 6


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
        producer.init_transactions(10)
        while not self.is_over.wait(0.02):
            self._number += 1
            producer.begin_transaction()
            for part in range(PARTS):
                producer.produce("orders", f"{self._number}:{part}", partition=part % 2)
            if self._number % 5 == 0:
                producer.flush(10)
                producer.abort_transaction(10)
                self.aborted.append(self._number)
            else:
                producer.commit_transaction(10)
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


def test_batch_and_stream_over_kills(spark: SparkSession, tmp_path: Path) -> None:
    settings = ("plain.interval.ms=100", "checkpoint.bytes=65536")
    with BrokerProcess(tmp_path, *settings) as broker:
        make_topics(broker.address, "orders")
        table = str(broker.data_directory / "plain" / "orders")
        eventually(lambda: (Path(table) / "_spark_metadata" / "32").exists())
        writer = Writer(broker)
        writer.start()
        streamed: list[str] = []

        def take(batch: DataFrame, _number: int) -> None:
            streamed.extend(values_of(batch))

        def start() -> Any:
            rows = spark.readStream.schema(spark.read.parquet(table).schema).parquet(table)
            return (
                rows.writeStream.option("checkpointLocation", str(tmp_path / "check"))
                .foreachBatch(take)
                .start()
            )

        query = start()
        for round_ in range(3):
            seen = len(writer.acked)
            eventually(partial(has_acked, writer, seen + 15), 40)
            check(values_of(spark.read.parquet(table)), writer)
            broker.restart()
            if round_ == 1:
                query.processAllAvailable()
                query.stop()
                query = start()
        writer.is_over.set()
        writer.join(30)
        eventually(
            lambda: set(writer.acked) <= {int(v.split(":")[0]) for v in values_of(spark.read.parquet(table))},
            30,
        )
        query.processAllAvailable()
        query.stop()
        batch = values_of(spark.read.parquet(table))
        check(batch, writer)
        check(streamed, writer)
        assert sorted(streamed) == sorted(batch)
