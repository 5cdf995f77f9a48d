"""What a Spark stream shows of transactions, some of which abort: with Spark's Kafka source, with faircopy's
source, and with plain Parquet.

Every broker gets the same input. Spark's Kafka source has its defaults, which also show uncommitted messages;
with Kafka it is run again for committed data only. faircopy publishes plain tables meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.load.timing import Timer
from bench.results import Histogram, SparkSource
from bench.spark.connector import Connector, fetch_connector
from bench.spark.process import SparkProcess
from bench.systems.faircopy import LOCAL_COPY, Faircopy
from bench.systems.kafka import Kafka, find_kafka
from bench.systems.system import Peer

PARTITIONS = 4
MESSAGE_BYTES = 100
ABORTS = (1, 4, 8)  # of ten transactions, these: 30 %
BOUNDED_TRANSACTION_ROWS = 100
LIVE_TRANSACTION_ROWS = 10
LIVE_INTERVAL_SECONDS = 0.1
WARM_UP_SECONDS = 5.0
COOL_DOWN_SECONDS = 2.0  # Spark takes a second longer over the last messages before a silence
TIMEOUT_SECONDS = 60.0

READ_COMMITTED = {"kafka.isolation.level": "read_committed"}


@dataclass(frozen=True)
class Reader:
    """One way for Spark to read a topic. `options` has the options that differ from the defaults."""

    name: str
    options: dict[str, str]

    def source(self, broker: Peer, topic: str) -> dict[str, Any]:
        """The SOURCE for bench/spark/stream.py: the whole topic."""
        if self.name == "parquet":
            return {"format": "parquet", "options": {"path": str(plain_table(broker, topic))}}
        options = {
            "kafka.bootstrap.servers": broker.address,
            "subscribe": topic,
            "startingOffsets": "earliest",
        }
        return {"format": self.name, "options": {**options, **self.options}}


OF_FAIRCOPY = [Reader("kafka", {}), Reader("faircopy", {}), Reader("parquet", {})]
OF_KAFKA = [Reader("kafka", {}), Reader("kafka", READ_COMMITTED)]


def measure(
    directory: Path, rows: int, live_seconds: float, rounds: int, progress: Callable[[str], None]
) -> list[SparkSource]:
    """Read `rows` rows in `rounds` rounds, then a live stream for `live_seconds`: every broker and reader.

    Raises Unavailable if Spark, Java, Kafka or the connector is not available.
    """
    find_kafka()
    connector = fetch_connector()
    faircopy = Faircopy(directory / "faircopy", LOCAL_COPY, "fsync", "plain.enabled=true")
    kafka = Kafka(directory / "kafka")
    found = []
    for broker, readers in ((faircopy, OF_FAIRCOPY), (kafka, OF_KAFKA)):
        with running(broker):
            progress(f"{broker.about.name}: {rows} rows for Spark, 30 % aborted")
            committed = write_input(broker, rows)
            for number, reader in enumerate(readers):
                progress(f"{broker.about.name}: Spark reads by {reader.name} {reader.options or ''}")
                scratch = directory / f"spark-{broker.about.kind}-{number}"
                found.append(
                    measure_reader(broker, reader, scratch, connector, committed, live_seconds, rounds)
                )
    return found


@contextmanager
def running(broker: Peer) -> Iterator[None]:
    """The broker serves within this block."""
    broker.start()
    try:
        yield
    finally:
        broker.stop()


def measure_reader(
    broker: Peer,
    reader: Reader,
    scratch: Path,
    connector: Connector,
    committed: int,
    live_seconds: float,
    rounds: int,
) -> SparkSource:
    """One row, with a new Spark, so that each pays the same for its warm-up."""
    if reader.name == "parquet":
        wait_until_published(plain_table(broker, "bounded"), committed)
    with SparkProcess(scratch, connector) as spark:
        source = reader.source(broker, "bounded")
        counted = spark.ask("count", source)
        reads = [spark.ask("read", source) for _ in range(rounds)]
        loads = [spark.ask("load", source) for _ in range(rounds)]
        latency = live_latency(broker, reader, spark, scratch.name, live_seconds)
    return SparkSource(
        broker.about.name,
        reader.name,
        reader.options,
        committed,
        counted["shown"],
        counted["aborted_shown"],
        [read["rows"] / read["seconds"] for read in reads],
        latency,
        [committed / load["seconds"] for load in loads],
    )


def live_latency(
    broker: Peer, reader: Reader, spark: SparkProcess, topic: str, live_seconds: float
) -> Histogram:
    """The latency from a committed message's send to its arrival in a micro-batch, in a slow stream."""
    writer = Writer(broker, topic, LIVE_TRANSACTION_ROWS)
    writer.write_transaction()
    if reader.name == "parquet":
        wait_until_published(plain_table(broker, topic), writer.committed)
    spark.ask("watch", reader.source(broker, topic))
    writer.write_for(WARM_UP_SECONDS)
    began_ns = time.monotonic_ns()
    writer.write_for(live_seconds)
    ended_ns = time.monotonic_ns()
    writer.write_for(COOL_DOWN_SECONDS)
    timer = Timer()
    for arrived_ns, sent in spark.ask("until", writer.committed)["arrivals"]:
        for sent_ns in sent:
            if began_ns <= sent_ns < ended_ns:
                timer.record((arrived_ns - sent_ns) / 1e9)
    return timer.histogram()


def write_input(broker: Peer, rows: int) -> int:
    """Create the topic "bounded" with `rows` rows, in whole transactions. Returns how many were committed."""
    writer = Writer(broker, "bounded", BOUNDED_TRANSACTION_ROWS)
    while writer.written < rows:
        writer.write_transaction()
    return writer.committed


class Writer:
    """Writes transactions over all partitions of a new topic; three of ten abort after all their messages
    were sent.

    bench/spark/stream.py says what is in a value.
    """

    def __init__(self, broker: Peer, topic: str, rows: int) -> None:
        self.written = 0
        self.committed = 0
        self._topic = topic
        self._rows = rows
        self._transactions = 0
        make_topic(broker, topic)
        self._producer = Producer(
            {"bootstrap.servers": broker.address, "transactional.id": f"spark/{topic}", "log_level": 0}
        )
        self._producer.init_transactions(TIMEOUT_SECONDS)

    def write_for(self, seconds: float) -> None:
        """Write a transaction in each interval, for this long."""
        due = time.monotonic()
        end = due + seconds
        while due < end:
            self.write_transaction()
            due += LIVE_INTERVAL_SECONDS
            time.sleep(max(0.0, due - time.monotonic()))

    def write_transaction(self) -> None:
        """Write one transaction, and commit or abort it according to its number."""
        is_aborted = self._transactions % 10 in ABORTS
        self._producer.begin_transaction()
        for row in range(self._rows):
            value = f"{'a' if is_aborted else 'c'}{time.monotonic_ns():019d}".ljust(MESSAGE_BYTES, ".")
            self._producer.produce(self._topic, value, partition=row % PARTITIONS)
        self._producer.flush(TIMEOUT_SECONDS)  # an abort would drop what is not sent yet
        if is_aborted:
            self._producer.abort_transaction(TIMEOUT_SECONDS)
        else:
            self._producer.commit_transaction(TIMEOUT_SECONDS)
            self.committed += self._rows
        self._transactions += 1
        self.written += self._rows


def make_topic(broker: Peer, topic: str) -> None:
    """Create a topic with the PARTITIONS of this measure. Raises KafkaException."""
    client = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    for made in client.create_topics([NewTopic(topic, PARTITIONS, 1)]).values():
        made.result(TIMEOUT_SECONDS)


def plain_table(broker: Peer, topic: str) -> Path:
    """The directory of the plain table of a topic."""
    return broker.data_directory / "plain" / topic


def wait_until_published(table: Path, rows: int) -> None:
    """Wait until a plain table has `rows` rows. Raises TimeoutError."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while published_rows(table) < rows:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{table} has fewer than {rows} rows after {TIMEOUT_SECONDS} s")
        time.sleep(0.1)


def published_rows(table: Path) -> int:
    """The number of rows in the files of a plain table, while no file has been merged yet."""
    return sum(pyarrow.parquet.read_metadata(path).num_rows for path in table.glob("d-*.parquet"))
