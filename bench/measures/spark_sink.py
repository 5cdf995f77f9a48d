"""How fast Spark writes rows: with its Kafka sink to Kafka, with faircopy's sink to faircopy, and the latter
without transactions. A sink in Python that only counts shows what Spark itself takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.measures.spark_source import make_topic, running
from bench.results import SparkSink
from bench.spark.connector import fetch_connector
from bench.spark.process import SparkProcess
from bench.spark.rows import KINDS
from bench.systems.faircopy import LOCAL_COPY, Faircopy
from bench.systems.kafka import Kafka, find_kafka
from bench.systems.system import Peer

WARM_UP_ROUNDS = 2
WITHOUT_TRANSACTIONS = "faircopy without transactions"
NOTHING = "nothing, in Python"
FORMATS = {
    "kafka": "kafka",
    "faircopy": "faircopy",
    WITHOUT_TRANSACTIONS: "faircopy_plain",
    NOTHING: "faircopy_counting",
}


class WrittenBatch(NamedTuple):
    """So many rows of a kind, by its name in bench/spark/rows.py."""

    rows: int
    kind: str


def measure(
    directory: Path, batches: Sequence[WrittenBatch], rounds: int, progress: Callable[[str], None]
) -> list[SparkSink]:
    """Write each of `batches` in `rounds` rounds: every broker and sink, in turn within each round.

    Raises Unavailable if Spark, Java, Kafka or the connector is not available.
    """
    find_kafka()
    connector = fetch_connector()
    faircopy = Faircopy(directory / "faircopy", LOCAL_COPY, "fsync", "plain.enabled=false")
    kafka = Kafka(directory / "kafka")
    cases: list[tuple[Peer, str]] = [
        (kafka, "kafka"),
        (faircopy, "kafka"),
        (faircopy, "faircopy"),
        (faircopy, WITHOUT_TRANSACTIONS),
        (faircopy, NOTHING),
    ]
    found = []
    with running(faircopy), running(kafka), SparkProcess(directory / "spark-sink", connector) as spark:
        make_topic(faircopy, "written")
        make_topic(kafka, "written")
        for batch in batches:
            found += written(spark, cases, batch, rounds, progress)
    return found


def written(
    spark: SparkProcess,
    cases: list[tuple[Peer, str]],
    batch: WrittenBatch,
    rounds: int,
    progress: Callable[[str], None],
) -> list[SparkSink]:
    """A row for each case, with a figure for each round after the warm-up."""
    seconds: dict[int, list[float]] = {number: [] for number in range(len(cases))}
    for round_ in range(WARM_UP_ROUNDS + rounds):
        progress(f"Spark writes {batch.rows} rows, {batch.kind}, {round_ + 1} of {WARM_UP_ROUNDS + rounds}")
        for number, (broker, sink) in enumerate(cases):
            options = {"kafka.bootstrap.servers": broker.address, "topic": "written"}
            asked = {"format": FORMATS[sink], "options": options, **batch._asdict()}
            seconds[number].append(spark.ask("write", asked)["seconds"])
    return [
        SparkSink(
            broker.about.name,
            sink,
            batch.rows,
            KINDS[batch.kind].bytes,
            [batch.rows / each for each in seconds[number][WARM_UP_ROUNDS:]],
            batch.kind,
        )
        for number, (broker, sink) in enumerate(cases)
    ]
