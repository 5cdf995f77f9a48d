"""How fast Spark writes rows: with its Kafka sink to Kafka, with faircopy's sink to faircopy, and the latter
without transactions.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench.measures.spark_source import make_topic, running
from bench.results import SparkSink
from bench.spark.connector import fetch_connector
from bench.spark.process import SparkProcess
from bench.systems.faircopy import LOCAL_COPY, Faircopy
from bench.systems.kafka import Kafka, fetch_kafka
from bench.systems.system import Peer

ROW_BYTES = 100
WARM_UP_ROUNDS = 2
WITHOUT_TRANSACTIONS = "faircopy without transactions"
FORMATS = {"kafka": "kafka", "faircopy": "faircopy", WITHOUT_TRANSACTIONS: "faircopy_plain"}


def measure(directory: Path, rows: int, rounds: int, progress: Callable[[str], None]) -> list[SparkSink]:
    """Write `rows` rows in `rounds` rounds: every broker and sink, in turn within each round.

    Raises Unavailable if Spark, Java, Kafka or the connector is not available.
    """
    fetch_kafka()
    connector = fetch_connector()
    faircopy = Faircopy(directory / "faircopy", LOCAL_COPY, "fsync", "plain.enabled=false")
    kafka = Kafka(directory / "kafka")
    cases: list[tuple[Peer, str]] = [
        (kafka, "kafka"),
        (faircopy, "kafka"),
        (faircopy, "faircopy"),
        (faircopy, WITHOUT_TRANSACTIONS),
    ]
    seconds: dict[int, list[float]] = {number: [] for number in range(len(cases))}
    with running(faircopy), running(kafka), SparkProcess(directory / "spark-sink", connector) as spark:
        make_topic(faircopy, "written")
        make_topic(kafka, "written")
        for round_ in range(rounds + WARM_UP_ROUNDS):
            progress(f"Spark writes {rows} rows, round {round_ + 1} of {rounds + WARM_UP_ROUNDS}")
            for number, (broker, sink) in enumerate(cases):
                options = {"kafka.bootstrap.servers": broker.address, "topic": "written"}
                asked = {"format": FORMATS[sink], "options": options, "rows": rows, "row_bytes": ROW_BYTES}
                seconds[number].append(spark.ask("write", asked)["seconds"])
    return [
        SparkSink(
            broker.about.name,
            sink,
            rows,
            ROW_BYTES,
            [rows / each for each in seconds[number][WARM_UP_ROUNDS:]],
        )
        for number, (broker, sink) in enumerate(cases)
    ]
