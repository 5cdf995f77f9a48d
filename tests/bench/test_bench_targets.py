"""The targets: what is compared with what, and which of them are met, missed or not measured."""

from __future__ import annotations

import pytest

from bench.page.limits import limits
from bench.page.spark_figures import own
from bench.page.targets import Target, targets
from bench.results import (
    AbortCost,
    Floor,
    Histogram,
    Latency,
    Results,
    SparkSink,
    SparkSource,
    Stall,
    Start,
    Throughput,
    ToolProduce,
    ToolTotals,
)


def histogram(p50_ms: float, p99_ms: float) -> Histogram:
    return Histogram(1000, p50_ms, p99_ms, p99_ms, p99_ms, p50_ms, [(50.0, p50_ms), (99.0, p99_ms)])


def add_system(results: Results, system: str, factor: float) -> None:
    """Everything that targets look at; `factor` is how slow, and how large, the system is."""
    short, long = histogram(3 * factor, 10 * factor), histogram(5 * factor, 20 * factor)
    wrong = histogram(900, 900)
    results.add(
        Latency(system, 4, 16, 0, 1, 100, [1.0], long, wrong, wrong, long, wrong),
        Latency(system, 4, 1, 0, 1, 100, [1.0], long, short, long, long, long),
        Latency(system, 4, 1, 50, 1, 100, [1.0], wrong, long, wrong, wrong, wrong),
        Latency(
            system, 1, 1, 0, 3, 100, [100 / factor, 90 / factor, 500 / factor], long, short, wrong, long, long
        ),
        Latency(system, 4, 8, 0, 1, 100, [200 / factor], *[wrong] * 5),
        Latency(system, 64, 64, 0, 1, 100, [50 / factor], *[wrong] * 5),
        Stall(system, histogram(1, 2), histogram(1, 2 * factor), histogram(1, 2), 10, 40, []),
        Throughput(system, 0, 100, [1.0], [1.0], [1.0], int(90 * factor * 2**20), [1.0]),
        Throughput(system, 0, 1024, [2e8 / factor], [1.0], [1.0], int(80 * factor * 2**20), [1.0]),
        Throughput(system, 100, 1024, [1.84e8 / factor], [1.0], [1.0], int(80 * factor * 2**20), [1.0]),
        AbortCost(system, 50, 1000, 100, 500, [1.0 * factor, 2.0 * factor, 2.0 * factor], 1, 1, 1),
        Start(system, [1.0], [1.0], int(60 * factor * 2**20)),
        SparkSink(system, own(system), 100_000, 100, [2e5 / factor]),
        SparkSink(system, "faircopy without transactions", 100_000, 100, [2.1e5 / factor]),
        SparkSource(
            system, own(system), {}, 9, 9, 0, [1e5 / factor], histogram(100 * factor, 900), [3e5 / factor]
        ),
        ToolProduce(system, 5, 0, 1024, 1e8, 900, 900, 900, 0.5),
        ToolProduce(system, 5, 5000, 1024, 5e6, int(4 * factor), 900, int(7 * factor), 0.5),
        ToolTotals(system, "4.3.1", 0, 900, 900, 900, 1e8, 20.0 * factor, int(80 * factor * 2**20)),
    )


def test_targets_of_a_case_made_by_hand() -> None:
    results = Results({})
    results.floors = [Floor("parallel fdatasync of 5 files", 1.0, "ms", "")]
    add_system(results, "local-copy fsync", 1)
    add_system(results, "kafka", 4)
    add_system(results, "none fsync", 0.9)
    by_fsync = [each for each in targets(results) if each.durability == "fsync"]
    assert [(each.ours, each.kafka, each.ratio, each.verdict) for each in by_fsync] == [
        (3.0, 12.0, pytest.approx(3 / 2.7), "met"),
        (10.0, 40.0, 0.25, "met"),
        (5.0, 20.0, pytest.approx(5 / 4.5), "met"),
        (20.0, 80.0, 0.25, "met"),
        (5.0, 20.0, pytest.approx(5 / (4.5 + 1.2)), "met"),
        (20.0, 80.0, pytest.approx(20 / (18 + 1.2)), "missed"),
        (5.0, 20.0, pytest.approx(5 / 4.5), "met"),
        (2.0, 8.0, 1.0, "met"),
        (200.0, 50.0, 4.0, "met"),
        (pytest.approx(8.0), pytest.approx(8.0), pytest.approx(0.08), "met"),
        (100.0, 25.0, 4.0, "met"),
        (200.0, 50.0, 4.0, "met"),
        (50.0, 12.5, 4.0, "met"),
        (250.0, 62.5, 4.0, "met"),
        (60.0, 240.0, 0.25, "met"),
        (90.0, 360.0, 0.25, "met"),
        (4.0, 16.0, 0.25, "met"),
        (7.0, 28.0, 0.25, "met"),
        (20.0, 80.0, 0.25, "met"),
        (80.0, 320.0, 0.25, "met"),
        (None, None, None, "not measured"),
        (2e5, 5e4, 4.0, "missed"),
        *[(None, None, None, "not measured")] * 3,
        (pytest.approx(4.76, 0.01), None, pytest.approx(0.0476, 0.01), "met"),
        (3e5, 7.5e4, 4.0, "met"),
        (1e5, 2.5e4, 4.0, "met"),
        (100.0, 400.0, 0.25, "met"),
    ]
    floors = [each.floor for each in by_fsync if each.floor is not None]
    assert floors == pytest.approx([2.7, 9, 4.5, 18, 4.5, 18, 4.5, 100 / 0.9, 200 / 0.9])
    by_os = [each for each in targets(results) if each.durability == "os"]
    assert {(each.ours, each.ratio, each.verdict) for each in by_os} == {(None, None, "not measured")}


def test_targets_are_missed_by_a_hair() -> None:
    results = Results({})
    add_system(results, "local-copy os", 1)
    add_system(results, "kafka", 2.9)
    verdicts = {each.figure: each.verdict for each in targets(results) if each.durability == "os"}
    assert verdicts["commit call to ack, 4 partitions, p50"] == "not measured"
    assert verdicts["commit call to ack, 4 partitions, p99"] == "missed"
    assert verdicts["plain produce, messages of 1 KiB"] == "met"
    assert verdicts["transactions of one message, one producer"] == "met"
    assert verdicts["memory when idle"] == "missed"


@pytest.mark.parametrize(("factor", "verdict"), [(1.19, "met"), (1.21, "missed")])
def test_what_the_client_takes_by_itself_is_the_floor(factor: float, verdict: str) -> None:
    results = Results({})
    add_system(results, "local-copy os", factor)
    add_system(results, "none os", 1)
    found = {
        each.figure: each for each in targets(results) if each.durability == "os" and each.ratio is not None
    }
    near = [each for each in found.values() if each.aim == "at most 1.2 times the floor"]
    assert len(near) == 6
    assert {each.verdict for each in near} == {verdict}


def test_a_flushed_commit_under_fsync_may_take_the_floor_and_the_disk() -> None:
    figure = "the same, flushed before the call, p50"
    verdicts = {}
    for sync_ms in (4.1, 4.2, None):
        results = Results({})
        add_system(results, "local-copy fsync", 2)
        add_system(results, "none fsync", 1)
        if sync_ms is not None:
            results.floors = [Floor("parallel fdatasync of 5 files", sync_ms, "ms", "")]
        verdicts[sync_ms] = next(
            each.verdict for each in targets(results) if (each.figure, each.durability) == (figure, "fsync")
        )
    assert verdicts == {4.1: "missed", 4.2: "met", None: "not measured"}


@pytest.mark.parametrize(("kafka", "verdict"), [(1.01, "met"), (0.99, "missed")])
def test_many_producers_are_held_against_kafka_without_fsync(kafka: float, verdict: str) -> None:
    results = Results({})
    add_system(results, "local-copy fsync", 1)
    add_system(results, "kafka", kafka)
    add_system(results, "kafka fsync", 100)
    rates = [each for each in targets(results) if each.unit == "1/s" and each.durability == "fsync"]
    assert [(each.figure, each.verdict) for each in rates] == [
        ("transactions of one message, one producer", verdict),
        ("transactions of 4 partitions, 8 producers", verdict),
        ("transactions of 64 partitions, 64 producers", verdict),
    ]


def test_latency_of_the_second_client_is_that_at_a_pace() -> None:
    results = Results({})
    add_system(results, "local-copy os", 1)
    add_system(results, "kafka", 1.5)
    found = {each.figure: (each.ours, each.kafka) for each in targets(results) if each.durability == "os"}
    assert found["with Kafka's own client, transactions of 5 ms, send to ack, p50"] == (4, 6)
    assert found["with Kafka's own client, transactions of 5 ms, send to ack, p99"] == (7, 10)
    assert found["with Kafka's own client, CPU of the broker"] == (20, 30)


def test_without_kafka_only_what_needs_it_is_not_measured() -> None:
    results = Results({})
    add_system(results, "local-copy fsync", 1)
    measured = {each.figure for each in targets(results) if each.verdict != "not measured"}
    assert measured == {
        "others' delivery while a transaction hangs, p99",
        "what a commit each 100 ms costs a producer",
        "Spark, what a transaction costs the sink",
    }


def test_a_measure_without_a_single_time_wins_nothing() -> None:
    results = Results({})
    nothing = Histogram(0, 0.0, 0.0, 0.0, 0.0, 0.0, [])
    results.floors = [Floor("parallel fdatasync of 5 files", 1.0, "ms", "")]
    for system in ("local-copy fsync", "kafka"):
        results.add(
            *(Latency(system, count, 1, 0, 1, 0, [1.0], *[nothing] * 5) for count in (1, 4, 16)),
            Stall(system, histogram(1, 2), nothing, nothing, 10, 40, []),
        )
    assert limits(results) == []
    measured = {each.figure for each in targets(results) if each.verdict != "not measured"}
    assert measured == {"transactions of one message, one producer"}


def test_aims_read_as_they_are_written() -> None:
    found: list[Target] = targets(Results({}))
    aims = {each.aim for each in found}
    assert {
        "at most Kafka's",
        "at most 1/3 of Kafka's",
        "at most 1/2 of Kafka's",
        "at most 1.2 times the floor",
        "at most the floor and 1.2 times a parallel fdatasync of 5 files",
        "at most 1.05 times its own before",
        "at least 0.7 of Kafka's",
        "at least 1.2 times Kafka's",
        "at most 1/10 of its speed without",
        "at least Kafka's",
        "at least 1.5 times Kafka's",
        "at least 3 times Kafka's",
        "at least 5 times Kafka's",
        "at most 1/4 of Kafka's",
    } == aims
