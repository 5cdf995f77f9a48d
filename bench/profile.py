"""How much of everything: the full run, the quick one, and one that only shows that all of it works."""

from __future__ import annotations

from dataclasses import dataclass, field

from bench.measures import kafka_tools
from bench.measures.growth import Sizes
from bench.measures.kafka_tools import Work
from bench.measures.latency import Cell
from bench.measures.replica_sets import Work as SetWork
from bench.measures.spark_sink import WrittenBatch
from bench.measures.stall import Spans
from bench.measures.throughput import WITHOUT_TRANSACTIONS, Case

KIB = 1 << 10
MAIN = ["local-copy fsync", "local-copy os", "kafka", "kafka fsync"]
# The main cell: enough transactions for a 99th percentile.
MOST_MEASURED = Cell(4, 1, least=150)
# With time for the last transaction's markers, which some producers otherwise wait for.
PACED = Cell(4, 1, pause_ms=50, least=60)
# What the replicas cost is seen beside one broker.
SETS = ["replica set fsync", "kafka set", "local-copy fsync"]
SET_CELLS = [PACED, *(Cell(partitions, producers) for partitions in (4, 16) for producers in (1, 8))]
RIVALS = ["remote-copy fsync", "markers fsync", "parallel-prepare fsync", "none fsync"]

FLOOR_OS = "none os"
# Far below what any of the systems can take, so that latency is not that of a full queue.
PACED_PER_SECOND = 5_000


@dataclass(frozen=True)
class LatencyPlan:
    """Cells for the main systems, fewer for the rivals; each is measured for `seconds` in each round."""

    cells: list[Cell]
    rival_cells: list[Cell]
    rounds: int
    seconds: float


@dataclass(frozen=True)
class StallPlan:
    """Which systems, and how long before, while and after a transaction hangs."""

    systems: list[str]
    spans: Spans


@dataclass(frozen=True)
class AbortPlan:
    """How many messages, which percentages of them abort, and how often each log is read."""

    systems: list[str]
    percents: list[int]
    messages: int
    message_bytes: int
    rounds: int


@dataclass(frozen=True)
class ThroughputPlan:
    """Cases for the main systems, fewer for the rivals; each ends after some seconds or bytes."""

    cases: list[Case]
    rival_cases: list[Case]
    rounds: int
    seconds: float
    bytes_max: int


@dataclass(frozen=True)
class StartPlan:
    """Which systems are started, how often, and under how long a load they are killed."""

    systems: list[str]
    rounds: int
    load_seconds: float


@dataclass(frozen=True)
class GrowthPlan:
    """What grows to which sizes, and how long is measured there."""

    systems: list[str]
    sizes: Sizes
    seconds: float


@dataclass(frozen=True)
class SparkPlan:
    """Rows to read, batches to write, and how long to watch a live stream."""

    rows: int
    written: list[WrittenBatch]
    live_seconds: float
    rounds: int


@dataclass(frozen=True)
class PlainPlan:
    """How often a plain table is published to, and how many are written to at once, for how long."""

    publications: int
    topics: int
    seconds: float


@dataclass(frozen=True)
class ToolsPlan:
    """Which systems Kafka's own tools are run with, and what they do."""

    systems: list[str]
    work: Work


@dataclass(frozen=True)
class SetsPlan:
    """Which systems of one broker or several, and what they do in each round, after a warm-up like it."""

    systems: list[str]
    work: SetWork
    warm_up: SetWork
    rounds: int


@dataclass(frozen=True)
class Profile:
    """One run. A plan that is None is not measured."""

    name: str
    systems: list[str]
    latency: LatencyPlan
    stall: StallPlan
    aborts: AbortPlan
    throughput: ThroughputPlan
    start: StartPlan
    growth: GrowthPlan | None = None
    spark: SparkPlan | None = None
    plain: PlainPlan | None = None
    tools: ToolsPlan | None = None
    sets: SetsPlan | None = None
    warm_up_seconds: float = 4.0
    rivals: list[str] = field(default_factory=lambda: [*RIVALS, FLOOR_OS, "kafka fsync"])


FULL = Profile(
    "full",
    [*MAIN, *RIVALS, FLOOR_OS],
    LatencyPlan(
        [PACED, MOST_MEASURED]
        + [
            Cell(partitions, producers)
            for partitions in (1, 4, 16, 64)
            for producers in (1, 8, 64)
            if (partitions, producers) != MOST_MEASURED[:2]
        ],
        [PACED, MOST_MEASURED, Cell(1, 1), Cell(16, 1), Cell(64, 1), Cell(4, 8), Cell(4, 64)],
        rounds=5,
        seconds=0.6,
    ),
    StallPlan(
        ["local-copy fsync", "local-copy os", "markers fsync", "parallel-prepare fsync", "kafka"],
        Spans(15.0, 30.0, 2.0),
    ),
    AbortPlan(
        ["local-copy fsync", "local-copy os", "markers fsync", "kafka"], [0, 10, 50, 90], 1_000_000, KIB, 5
    ),
    ThroughputPlan(
        [Case(every, KIB) for every in (WITHOUT_TRANSACTIONS, 10, 100, 1000)]
        + [Case(every, size) for size in (100, 16 * KIB) for every in (WITHOUT_TRANSACTIONS, 100)],
        [Case(WITHOUT_TRANSACTIONS, KIB), Case(100, KIB)],
        rounds=5,
        seconds=0.7,
        bytes_max=300_000_000,
    ),
    StartPlan(["local-copy fsync", "local-copy os", "kafka"], 3, 2.0),
    GrowthPlan(
        ["local-copy fsync", "kafka"],
        Sizes([1, 100, 1_000], [1, 1_000, 100_000], [10**9, 20 * 10**9]),
        seconds=2.0,
    ),
    SparkPlan(
        rows=200_000,
        written=[
            *(WrittenBatch(rows, "padded") for rows in (10_000, 100_000, 1_000_000)),
            WrittenBatch(100_000, "JSON"),
            WrittenBatch(100_000, "1 KiB"),
        ],
        live_seconds=8.0,
        rounds=3,
    ),
    PlainPlan(publications=100_000, topics=500, seconds=60.0),
    ToolsPlan(
        ["local-copy fsync", "local-copy os", "kafka"],
        Work(
            kafka_tools.Case(5, 100_000),
            [
                *(kafka_tools.Case(*case) for case in ((100, 250_000), (5, 150_000), (0, 300_000))),
                *(kafka_tools.Case(each, 25_000, PACED_PER_SECOND) for each in (100, 5, 0)),
            ],
            end_to_end_records=4_000,
        ),
    ),
    SetsPlan(
        SETS,
        SetWork(SET_CELLS, seconds=3.0, bytes_max=1_000_000_000),
        # Kafka's CPU time for a transaction falls for about a minute of load.
        SetWork(SET_CELLS, seconds=8.0, bytes_max=1_000_000_000),
        rounds=3,
    ),
)

QUICK = Profile(
    "quick",
    ["local-copy fsync", "local-copy os", "kafka", *RIVALS],
    LatencyPlan(
        [Cell(1, 1), Cell(4, 1), Cell(16, 1), Cell(4, 1, 50)], [Cell(1, 1), Cell(4, 1)], rounds=1, seconds=0.7
    ),
    StallPlan(["local-copy fsync", "markers fsync", "kafka"], Spans(3.0, 4.0, 1.0)),
    AbortPlan(["local-copy fsync", "markers fsync", "kafka"], [0, 50], 100_000, KIB, 1),
    ThroughputPlan(
        [Case(WITHOUT_TRANSACTIONS, KIB), Case(100, KIB)], [], rounds=1, seconds=1.0, bytes_max=500_000_000
    ),
    StartPlan(["local-copy fsync"], 2, 1.0),
    sets=SetsPlan(
        SETS,
        SetWork([Cell(4, 1)], seconds=1.0, bytes_max=200_000_000),
        SetWork([Cell(4, 1)], seconds=0.5, bytes_max=100_000_000),
        rounds=1,
    ),
    warm_up_seconds=0.5,
)

SMOKE = Profile(
    "smoke",
    ["local-copy fsync", "kafka"],
    LatencyPlan([Cell(1, 1)], [], rounds=1, seconds=0.05),
    StallPlan(["local-copy fsync", "kafka"], Spans(0.2, 0.2, 0.2)),
    AbortPlan(["local-copy fsync", "kafka"], [50], 2_000, 100, 1),
    ThroughputPlan([Case(10, 100)], [], rounds=1, seconds=0.05, bytes_max=1_000_000),
    StartPlan(["local-copy fsync"], 1, 0.05),
    warm_up_seconds=0.05,
    rivals=[],
)

PROFILES = {profile.name: profile for profile in (FULL, QUICK, SMOKE)}
