"""The result file: the results of a run, as JSON.

A file is one object: `format`, `about` (machine, versions, settings, seed), `systems`, `floors`, `skipped`,
and one list of rows for each measure, with the name of the row's class below. Every row names its system.
Times are milliseconds in histograms and seconds elsewhere; sizes are bytes. A figure of several rounds is a
list with one number per round.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FORMAT = 2


@dataclass(frozen=True)
class Histogram:
    """A distribution of times. `curve` has (percent, milliseconds), for plots."""

    count: int
    p50_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float
    mean_ms: float
    curve: list[tuple[float, float]]


@dataclass(frozen=True)
class System:
    """One system under test. `name` is what all rows say; `kind` is faircopy or kafka."""

    name: str
    kind: str
    version: str
    protocol: str
    durability: str
    settings: dict[str, str]


@dataclass(frozen=True)
class Floor:
    """A figure of the bare machine: `value` in `unit`."""

    name: str
    value: float
    unit: str
    about: str


@dataclass(frozen=True)
class Skipped:
    """A step that was not measured, and why."""

    what: str
    why: str


@dataclass(frozen=True)
class Latency:
    """Transactions with one message in each of `partitions` partitions, by `producers` producers at once,
    each of which pauses for `pause_ms` between two.

    `begin_to_ack` is from begin_transaction to the commit's ack, `commit_to_ack` from the call of
    commit_transaction to its ack, while the messages sent just before are still in flight.
    `flushed_commit_to_ack` is of other transactions, every second one, which were flushed before the call.
    `ack_to_visible` is from the ack to the delivery of the last message, `end_to_end` from each message's
    send to its delivery, at a consumer that sees committed data only.
    """

    system: str
    partitions: int
    producers: int
    pause_ms: int
    rounds: int
    transactions: int
    per_second: list[float]
    begin_to_ack: Histogram
    commit_to_ack: Histogram
    flushed_commit_to_ack: Histogram
    ack_to_visible: Histogram
    end_to_end: Histogram


@dataclass(frozen=True)
class PlainLatency:
    """One message at a time without a transaction: send to ack, and send to delivery."""

    system: str
    rounds: int
    send_to_ack: Histogram
    end_to_end: Histogram


@dataclass(frozen=True)
class Stall:
    """Delivery of others' committed messages before, while and after a transaction hangs in their partition.

    `timeline` has (second of the send, milliseconds until delivery); the transaction hung from
    `opened_seconds` to `closed_seconds`.
    """

    system: str
    before: Histogram
    during: Histogram
    after: Histogram
    opened_seconds: float
    closed_seconds: float
    timeline: list[tuple[float, float]]


@dataclass(frozen=True)
class AbortCost:
    """Reading a log of `messages` messages, `aborted_percent` of which belong to aborted transactions.

    `wire_bytes` reached the consumer. `log_bytes` is the visible log on disk, `disk_bytes` the log and the
    journals.
    """

    system: str
    aborted_percent: int
    messages: int
    message_bytes: int
    delivered: int
    seconds: list[float]
    wire_bytes: int
    log_bytes: int
    disk_bytes: int


@dataclass(frozen=True)
class Throughput:
    """One producer at full speed, then one consumer; `commit_every_ms` is 0 without transactions.

    CPU and memory are the broker's. `written_per_byte` is how many bytes it gave to the file system per
    message byte.
    """

    system: str
    commit_every_ms: int
    message_bytes: int
    produced_bytes_per_second: list[float]
    consumed_bytes_per_second: list[float]
    cpu_seconds_per_million: list[float]
    peak_memory_bytes: int
    written_per_byte: list[float]


@dataclass(frozen=True)
class Start:
    """From a process's start until its first client is served; `restart` is after kill -9 under load."""

    system: str
    cold_seconds: list[float]
    restart_seconds: list[float]
    idle_memory_bytes: int


@dataclass(frozen=True)
class Growth:
    """The same figures while `of` grows: partitions, open transactions or log bytes; `size` is how many."""

    system: str
    of: str
    size: int
    commit_to_ack: Histogram
    produced_bytes_per_second: float
    memory_bytes: int
    restart_seconds: float


@dataclass(frozen=True)
class SparkSource:
    """What Spark shows of transactions, some of which abort. `reader` is kafka, faircopy or parquet; rows are
    read in streams, and in batches.
    """

    system: str
    reader: str
    options: dict[str, str]
    committed: int
    shown: int
    aborted_shown: int
    rows_per_second: list[float]
    latency: Histogram
    batch_rows_per_second: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class SparkSink:
    """How fast Spark writes a batch of rows. `sink` is kafka, faircopy, faircopy without transactions, or
    nothing: a data source in Python that counts rows. `kind` names rows, as bench/spark/rows.py has them;
    `row_bytes` are those of a value, about.
    """

    system: str
    sink: str
    rows: int
    row_bytes: int
    rows_per_second: list[float]
    kind: str = "padded"


@dataclass(frozen=True)
class PlainGrowth:
    """What a publication to a plain table takes when the table has had so many, by a clock that goes faster:
    the median and the mean of the last tenth of them.
    """

    system: str
    publications: int
    median_seconds: float
    mean_seconds: float


@dataclass(frozen=True)
class PlainFreshness:
    """How old messages are when their plain tables show them, with a table for each topic, and a message in
    each of them each second.
    """

    system: str
    topics: int
    messages: int
    interval_seconds: float
    p50_seconds: float
    p99_seconds: float


@dataclass(frozen=True)
class ToolProduce:
    """A run of Kafka's ProducerPerformance, to one partition; `transaction_ms` is 0 without transactions.

    `offered_per_second` limits the records, 0 does not. Latencies are whole milliseconds, from the call of
    send to the record's ack, which comes before that of the commit. `commit_share` is the part of the run
    that the producer spent in calls of commitTransaction.
    """

    system: str
    transaction_ms: int
    offered_per_second: int
    record_bytes: int
    produced_bytes_per_second: float
    p50_ms: int
    p95_ms: int
    p99_ms: int
    commit_share: float


@dataclass(frozen=True)
class ToolTotals:
    """One broker under all of Kafka's tools.

    `transaction_version` is the version in force, 0 if the broker names none: from 2 on Kafka's producer
    speaks transactions v2. The delivery of one plain record at a time is EndToEndLatency's, the rate of
    reading ConsumerPerformance's. CPU is the broker's over all tools, memory its peak.
    """

    system: str
    tools_version: str
    transaction_version: int
    delivery_p50_ms: int
    delivery_p99_ms: int
    delivery_p999_ms: int
    consumed_bytes_per_second: float
    cpu_seconds: float
    peak_memory_bytes: int


@dataclass(frozen=True)
class SetTransactions:
    """Transactions as in `Latency`, with several brokers, or with one for comparison.

    `cpu_ms_per_transaction` is the CPU time of all processes of the system together.
    """

    system: str
    partitions: int
    producers: int
    pause_ms: int
    rounds: int
    transactions: int
    per_second: list[float]
    commit_to_ack: Histogram
    flushed_commit_to_ack: Histogram
    cpu_ms_per_transaction: list[float]


@dataclass(frozen=True)
class SetMessages:
    """Plain messages with several brokers, or with one: a producer at full speed to `partitions` partitions,
    and one message at a time.

    CPU seconds for 10^9 bytes of messages at full speed, and the most memory ever, are those of each process:
    broker, leader, follower 2.
    """

    system: str
    partitions: int
    message_bytes: int
    produced_bytes_per_second: list[float]
    cpu_seconds_per_gb: dict[str, list[float]]
    peak_memory_bytes: dict[str, int]
    send_to_ack: Histogram


MEASURES: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        Latency, PlainLatency, Stall, AbortCost, Throughput, Start, Growth, SparkSource, SparkSink,
        PlainGrowth, PlainFreshness, ToolProduce, ToolTotals, SetTransactions, SetMessages,
    )
}  # fmt: skip


@dataclass
class Results:
    """The results of one run. `rows` has the rows of each measure, by the name of their class."""

    about: dict[str, Any]
    systems: list[System] = field(default_factory=list)
    floors: list[Floor] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    rows: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in MEASURES})

    def add(self, *rows: Any) -> None:
        """Add rows of any measure."""
        for row in rows:
            self.rows[type(row).__name__].append(row)

    def of(self, kind: type[Any]) -> list[Any]:
        """The rows of one measure."""
        return self.rows[kind.__name__]


def save(results: Results, path: Path) -> None:
    """Write a result file."""
    document = {
        "format": FORMAT,
        "about": results.about,
        "systems": [dataclasses.asdict(system) for system in results.systems],
        "floors": [dataclasses.asdict(floor) for floor in results.floors],
        "skipped": [dataclasses.asdict(skipped) for skipped in results.skipped],
        **{name: [dataclasses.asdict(row) for row in rows] for name, rows in results.rows.items()},
    }
    path.write_text(json.dumps(shortened(document), indent=1) + "\n")


def load(path: Path) -> Results:
    """Read a result file. A file that is older than a measure has no rows of it; rows of a measure that is
    gone are not read. Raises ValueError if it has another format.
    """
    document = json.loads(path.read_text())
    if document.get("format") != FORMAT:
        raise ValueError(
            f"{path} has format {document.get('format')}; this benchmark reads {FORMAT}: run it again"
        )
    results = Results(document["about"])
    results.systems = [System(**system) for system in document["systems"]]
    results.floors = [Floor(**floor) for floor in document["floors"]]
    results.skipped = [Skipped(**skipped) for skipped in document["skipped"]]
    for name, kind in MEASURES.items():
        results.rows[name] = [restored(kind, row) for row in document.get(name, [])]
    return results


def restored(kind: type[Any], row: dict[str, Any]) -> Any:
    """A row from its JSON: histograms are objects with a curve, points of time lines are pairs."""
    return kind(**{name: restored_value(value) for name, value in row.items()})


def restored_value(value: Any) -> Any:
    """A value of a row as it was before JSON: histograms, and tuples for lists in lists."""
    if isinstance(value, dict) and "curve" in value:
        return Histogram(**{**value, "curve": [tuple(point) for point in value["curve"]]})
    if isinstance(value, list) and value and isinstance(value[0], list):
        return [tuple(point) for point in value]
    return value


def shortened(value: Any) -> Any:
    """Numbers with five significant digits: more is noise."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [shortened(item) for item in value]
    return value
