"""Kafka's own tools, and thus Kafka's own client, with each broker; and what they cost the broker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench.kafka_tools import output
from bench.kafka_tools.tools import Tools
from bench.load.clients import make_topic
from bench.measures.start import Factory
from bench.results import ToolProduce, ToolTotals
from bench.systems.system import Peer, cpu_seconds, peak_memory_bytes

RECORD_BYTES = 1024
END_TO_END_BYTES = 100
WITHOUT_TRANSACTIONS = 0
AS_FAST_AS_IT_CAN = -1  # the tool's own value for this
WARM_UP_PART = 0.2
WARM_UP_TOPIC, END_TO_END_TOPIC = "tools-warm-up", "tools-end-to-end"

Row = ToolProduce | ToolTotals
Progress = Callable[[str], None]


class Case(NamedTuple):
    """Milliseconds between commits (0 for none), the number of records, and the limit on records a second."""

    transaction_ms: int
    records: int
    per_second: int = AS_FAST_AS_IT_CAN

    @property
    def topic(self) -> str:
        """The name of the case's topic."""
        pace = f"{self.per_second}-a-second" if self.per_second != AS_FAST_AS_IT_CAN else "unlimited"
        return f"tools-{self.transaction_ms}-ms-{pace}"


class Work(NamedTuple):
    """The work of the tools. The warm-up does not count; the first case's records are consumed."""

    warm_up: Case
    cases: list[Case]
    end_to_end_records: int


def measure(directory: Path, factories: list[Factory], work: Work, progress: Progress) -> list[Row]:
    """Every system on its own, on an empty directory.

    Raises Unavailable if the tools are not available, and RuntimeError if one of them fails.
    """
    tools = Tools()
    rows: list[Row] = []
    for factory in factories:
        with TemporaryDirectory(prefix="tools-", dir=directory) as place:
            rows += rows_of(tools, factory(Path(place)), work, progress)
    return rows


def rows_of(tools: Tools, peer: Peer, work: Work, progress: Progress) -> list[Row]:
    """Start a system and measure it. In the end it is killed, since its directory is deleted."""
    try:
        peer.start()
        progress(f"{peer.about.name}: warm-up")
        produce(tools, peer.address, work.warm_up, WARM_UP_TOPIC)
        cpu_before = cpu_seconds(peer.pid)
        produced = [produced_row(tools, peer, case, progress) for case in work.cases]
        progress(f"{peer.about.name}: EndToEndLatency")
        delivered = end_to_end(tools, peer.address, work.end_to_end_records)
        progress(f"{peer.about.name}: ConsumerPerformance")
        read = consume(tools, peer.address, work.cases[0])
        totals = ToolTotals(
            peer.about.name,
            tools.version,
            transaction_version(tools, peer.address),
            *delivered,
            read.records_per_second * RECORD_BYTES,
            cpu_seconds(peer.pid) - cpu_before,
            peak_memory_bytes(peer.pid),
        )
        return [*produced, totals]
    finally:
        peer.kill()


def produced_row(tools: Tools, peer: Peer, case: Case, progress: Progress) -> ToolProduce:
    """Run ProducerPerformance in one case, and return its row."""
    progress(f"{peer.about.name}: ProducerPerformance, {case.topic}")
    run = produce(tools, peer.address, case, case.topic)
    return ToolProduce(
        peer.about.name,
        case.transaction_ms,
        max(case.per_second, 0),
        RECORD_BYTES,
        run.records_per_second * RECORD_BYTES,
        run.p50_ms,
        run.p95_ms,
        run.p99_ms,
        run.commit_share,
    )


# -- the tools ---------------------------------------------------------------------------------------------


def to(address: str) -> tuple[str, str]:
    """The tools' option that names a broker."""
    return "--bootstrap-server", address


def produce(tools: Tools, address: str, case: Case, topic: str) -> output.Produced:
    """Send a case's records to one new partition. Raises RuntimeError if not all were acked."""
    make_topic(address, topic, 1)
    arguments = ["--topic", topic, "--num-records", str(case.records), "--record-size", str(RECORD_BYTES)]
    arguments += ["--throughput", str(case.per_second)]
    arguments += ["--warmup-records", str(int(case.records * WARM_UP_PART))]
    if case.transaction_ms != WITHOUT_TRANSACTIONS:
        arguments += ["--transactional-id", topic, "--transaction-duration-ms", str(case.transaction_ms)]
    run = output.produced(tools.run("ProducerPerformance", *to(address), *arguments, "--print-metrics"))
    expect(case.records, run.records, topic)
    return run


def end_to_end(tools: Tools, address: str, records: int) -> output.EndToEnd:
    """Send `records` records one by one, each after the one before was delivered."""
    make_topic(address, END_TO_END_TOPIC, 1)
    arguments = ["--topic", END_TO_END_TOPIC, "--num-records", str(records)]
    arguments += ["--producer-acks", "all", "--record-size", str(END_TO_END_BYTES)]
    return output.end_to_end(tools.run("EndToEndLatency", *to(address), *arguments))


def consume(tools: Tools, address: str, case: Case) -> output.Consumed:
    """Read the records that a case committed. Raises RuntimeError if some are missing."""
    arguments = ["--topic", case.topic, "--num-records", str(case.records)]
    arguments += ["--command-property", "isolation.level=read_committed"]
    run = output.consumed(tools.run("ConsumerPerformance", *to(address), *arguments))
    expect(case.records, run.records, case.topic)
    return run


def transaction_version(tools: Tools, address: str) -> int:
    """The transaction version that the broker has in force; 0 if it names none."""
    return output.transaction_version(tools.run("FeatureCommand", *to(address), "describe"))


def expect(wanted: int, found: int, topic: str) -> None:
    """Raise RuntimeError if records were lost: that does not count as faster."""
    if found != wanted:
        raise RuntimeError(f"{found:,} of {wanted:,} records came through {topic}")
