"""Invented results that look like those of a run, for tests of the page.

The same seed gives the same file.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from bench.results import (
    AbortCost,
    Floor,
    Growth,
    Histogram,
    Latency,
    PlainFreshness,
    PlainGrowth,
    PlainLatency,
    Results,
    SetMessages,
    SetTransactions,
    Skipped,
    SparkSink,
    SparkSource,
    Stall,
    Start,
    System,
    Throughput,
    ToolProduce,
    ToolTotals,
)

KIB, MIB = 1 << 10, 1 << 20
PERCENTS = [*range(0, 90, 2), *(90 + 0.5 * step for step in range(18)), 99, 99.5, 99.9, 99.95, 99.99, 100]


@dataclass(frozen=True)
class Character:
    """How an invented system behaves: milliseconds of a commit, MB/s, MiB idle, and whether others stall."""

    name: str
    kind: str
    protocol: str
    durability: str
    commit_ms: float
    visible_ms: float
    mb_per_second: float
    idle_mib: float
    stalls: bool

    @property
    def is_kafka(self) -> bool:
        return self.kind == "kafka"


CHARACTERS = [
    Character("local-copy fsync", "faircopy", "local-copy", "fsync", 3.2, 1.4, 190, 68, False),
    Character("local-copy os", "faircopy", "local-copy", "os", 1.9, 0.6, 310, 67, False),
    Character("remote-copy fsync", "faircopy", "remote-copy", "fsync", 3.0, 3.8, 120, 70, False),
    Character("markers fsync", "faircopy", "markers", "fsync", 6.8, 1.5, 185, 68, True),
    Character("parallel-prepare fsync", "faircopy", "parallel-prepare", "fsync", 3.3, 1.8, 180, 68, True),
    Character("none fsync", "faircopy", "none", "fsync", 1.7, 0.4, 205, 66, False),
    Character("kafka", "kafka", "markers", "os", 12.5, 6.0, 260, 410, True),
    Character("kafka fsync", "kafka", "markers", "fsync", 31.0, 9.0, 90, 415, True),
]


def full(seed: int = 7) -> Results:
    """Everything was measured."""
    rng = random.Random(seed)
    results = Results(
        {
            "invented": "yes: these figures were made up to try the page",
            "seed": seed,
            "profile": "full",
            "machine": {"processor": "2 cores", "memory": "8 GiB", "kernel": "Linux 6.1"},
            "versions": {
                "faircopy": "0.1.0",
                "python": "3.11.7",
                "confluent-kafka": "2.16.1",
                "kafka": "4.1.0",
            },
        }
    )
    results.systems = [system(each) for each in CHARACTERS]
    results.floors = floors()
    results.skipped = [Skipped("spark with kafka fsync", "the profile leaves it out")]
    for each in CHARACTERS:
        add_latency(results, rng, each)
        add_stall(results, rng, each)
        add_throughput(results, rng, each)
        add_aborts(results, rng, each)
        add_growth(results, rng, each)
        add_tools(results, rng, each)
    add_sets(results, rng)
    return results


def quick(seed: int = 7) -> Results:
    """A short run without Kafka: few cells, one round, several lists empty."""
    whole = full(seed)
    names = {"local-copy fsync", "local-copy os", "markers fsync"}
    results = Results({"profile": "quick"})
    results.systems = [each for each in whole.systems if each.name in names]
    results.floors = whole.floors[:2]
    no_java = "no Java 17 or newer was found"
    results.skipped = [
        Skipped("starts of system kafka", no_java),
        Skipped("growth", "the quick profile"),
        Skipped("system kafka", no_java),
    ]
    results.add(
        *(
            row
            for row in whole.of(Latency)
            if row.system in names and (row.partitions, row.producers) == (4, 1)
        )
    )
    results.add(*(row for row in whole.of(Throughput) if row.system in names and row.commit_every_ms == 0))
    return results


def system(each: Character) -> System:
    settings = {"durability": each.durability} if not each.is_kafka else {"log.flush.interval.messages": "1"}
    if each.name == "kafka":
        settings = {}
    version = "4.1.0" if each.is_kafka else "0.1.0"
    return System(each.name, each.kind, version, each.protocol, each.durability, settings)


def floors() -> list[Floor]:
    return [
        Floor("loopback round trip", 0.031, "ms", "one byte there and back over TCP, p50"),
        Floor("fdatasync", 0.92, "ms", "300 bytes into a preallocated file, p50"),
        Floor("parallel fdatasync of 5 files", 1.31, "ms", "the same on each of 5 files, side by side"),
        Floor("parallel fdatasync of 17 files", 2.4, "ms", "the same on each of 17 files"),
        Floor("parallel fdatasync of 65 files", 6.9, "ms", "the same on each of 65 files"),
        Floor("memory copy", 7.6e9, "bytes/s", "64 MiB from one buffer to another"),
        Floor("write twice", 0.9e9, "bytes/s", "the same bytes to two files"),
    ]


def histogram(rng: random.Random, median_ms: float, spread: float = 0.25, count: int = 2000) -> Histogram:
    """Log-normal, with a rare long tail."""
    return of_values(
        [
            median_ms * rng.lognormvariate(0, spread) * (rng.uniform(2, 6) if rng.random() < 0.01 else 1)
            for _ in range(count)
        ]
    )


def of_values(measured: list[float]) -> Histogram:
    """The distribution of these."""
    values = sorted(measured)

    def at(percent: float) -> float:
        return values[min(int(len(values) * percent / 100), len(values) - 1)]

    curve = [(percent, at(percent)) for percent in PERCENTS]
    return Histogram(len(values), at(50), at(99), at(99.9), values[-1], sum(values) / len(values), curve)


def rounds(rng: random.Random, value: float, count: int = 5) -> list[float]:
    return [value * rng.uniform(0.93, 1.06) for _ in range(count)]


def add_latency(results: Results, rng: random.Random, each: Character) -> None:
    slope = 0.45 if each.protocol == "markers" else 0.22
    for partitions in (1, 4, 16, 64):
        for producers in (1, 4, 16):
            commit_ms = each.commit_ms * (partitions / 4) ** slope * producers**0.45
            visible_ms = each.visible_ms * producers**0.3
            results.add(
                Latency(
                    each.name, partitions, producers, 0, 3, 2000,
                    rounds(rng, 1000 * producers / (commit_ms + 0.6), 3),
                    histogram(rng, commit_ms + 0.3), histogram(rng, commit_ms),
                    histogram(rng, commit_ms * 0.5), histogram(rng, visible_ms, 0.5),
                    histogram(rng, commit_ms + visible_ms),
                )
            )  # fmt: skip
    plain_ms = each.commit_ms / 3
    results.add(PlainLatency(each.name, 3, histogram(rng, plain_ms), histogram(rng, plain_ms + 0.3)))


def add_stall(results: Results, rng: random.Random, each: Character) -> None:
    delivered_ms, opened, closed = each.commit_ms / 2, 10.0 + rng.random(), 40.0 + rng.random()
    timeline = []
    for step in range(60 * 25):
        second = step / 25
        hung_ms = (closed - second) * 1000 if each.stalls and opened < second < closed else 0.0
        timeline.append((second, delivered_ms * rng.lognormvariate(0, 0.3) + hung_ms))
    before, during, after = (
        of_values([ms for second, ms in timeline if since <= second < until])
        for since, until in ((0, opened), (opened, closed), (closed, 60))
    )
    results.add(Stall(each.name, before, during, after, opened, closed, timeline))


def add_throughput(results: Results, rng: random.Random, each: Character) -> None:
    for message_bytes in (100, KIB):
        for commit_every_ms in (0, 10, 100, 1000):
            rate = each.mb_per_second * 1e6 * (0.35 if message_bytes == 100 else 1)
            rate *= {0: 1.0, 10: 0.6, 100: 0.93, 1000: 0.98}[commit_every_ms]
            results.add(
                Throughput(
                    each.name, commit_every_ms, message_bytes, rounds(rng, rate), rounds(rng, rate * 1.4),
                    rounds(rng, 3.1), int(each.idle_mib * 2.4 * MIB),
                    rounds(rng, 1.0 if each.is_kafka else 2.05),
                )
            )  # fmt: skip
    results.add(
        Start(
            each.name,
            rounds(rng, each.idle_mib / 200),
            rounds(rng, each.idle_mib / 130),
            int(each.idle_mib * MIB),
        )
    )


def add_aborts(results: Results, rng: random.Random, each: Character) -> None:
    messages = 500_000
    for percent in (0, 10, 50, 90):
        delivered = messages * (100 - percent) // 100
        sent = messages if each.protocol == "markers" or each.is_kafka else delivered
        seconds = rounds(rng, sent * KIB / (each.mb_per_second * 1.6e6))
        wire, log = int(sent * KIB * 1.07), int(sent * KIB * 1.07)
        disk = log if each.is_kafka else int(log + messages * KIB * 0.4)
        results.add(AbortCost(each.name, percent, messages, KIB, delivered, seconds, wire, log, disk))
    for sink in ("kafka", "faircopy"):
        for rows in (10_000, 100_000):
            results.add(SparkSink(each.name, sink, rows, 100, rounds(rng, 40_000.0, 3)))
    if not each.is_kafka:
        results.add(PlainGrowth(each.name, 100_000, 0.003, 0.004))
        results.add(PlainFreshness(each.name, 500, 30_000, 10.0, 5.1, 10.2))
    for reader in ("kafka", "faircopy", "parquet"):
        if reader == "kafka" or not each.is_kafka:
            wrong = 21_000 if each.stalls and reader == "kafka" else 0
            options = {"isolation.level": "read_uncommitted"} if reader == "kafka" else {}
            latency = histogram(rng, 900.0)
            results.add(
                SparkSource(
                    each.name,
                    reader,
                    options,
                    80_000,
                    80_000 + wrong,
                    wrong,
                    rounds(rng, 61_000.0, 3),
                    latency,
                    rounds(rng, 161_000.0, 3),
                )
            )


def add_growth(results: Results, rng: random.Random, each: Character) -> None:
    sizes = {
        "partitions": (10, 100, 1000),
        "open transactions": (10, 100, 1000, 10_000),
        "log bytes": (64 * MIB, 512 * MIB, 4096 * MIB),
    }
    for of, steps in sizes.items():
        for step in steps:
            grown = step / steps[0]
            results.add(
                Growth(
                    each.name, of, step, histogram(rng, each.commit_ms * grown**0.08, count=400),
                    each.mb_per_second * 1e6 * grown**-0.03, int(each.idle_mib * MIB * grown**0.12),
                    0.3 * grown ** (0.4 if of == "partitions" else 0.05) * rng.uniform(0.95, 1.05),
                )
            )  # fmt: skip


def add_tools(results: Results, rng: random.Random, each: Character) -> None:
    """Kafka's tools print whole milliseconds, and no plain message waits longer than for its batch."""
    for transaction_ms in (0, 5, 100):
        for offered in (0, 5_000):
            p50_ms = 3 if not transaction_ms else round(each.commit_ms) + 1
            results.add(
                ToolProduce(
                    each.name, transaction_ms, offered, KIB,
                    offered * KIB or each.mb_per_second * 1e6 * rng.uniform(0.9, 1.1),
                    p50_ms, 2 * p50_ms, 4 * p50_ms, 0.4 if transaction_ms else 0.0,
                )
            )  # fmt: skip
    version = 2 if each.is_kafka else 0
    memory_bytes = int(each.idle_mib * 2 * MIB)
    results.add(ToolTotals(each.name, "4.1.0", version, 1, 8, 15, 1.9e8, each.idle_mib / 9, memory_bytes))


def add_sets(results: Results, rng: random.Random) -> None:
    """Three systems, two of them with three processes."""
    roles = {
        "local-copy fsync": ["broker"],
        "replica set fsync": ["leader", "follower 2", "follower 3"],
        "kafka set": ["broker 1", "broker 2", "broker 3"],
    }
    for name, processes in roles.items():
        for pause_ms in (0, 50):
            results.add(
                SetTransactions(
                    name, 4, 1, pause_ms, 3, 900, rounds(rng, 200.0, 3), histogram(rng, 4.0),
                    histogram(rng, 2.0), [1.5, 2.5, 1.0],
                )
            )  # fmt: skip
        results.add(
            SetMessages(
                name, 4, KIB, rounds(rng, 2e8, 3), {role: [3.0, 2.0, 2.5] for role in processes},
                dict.fromkeys(processes, 80 * MIB), histogram(rng, 1.0),
            )
        )  # fmt: skip
