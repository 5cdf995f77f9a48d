"""faircopy beside Kafka: what is compared with what, and who is ahead."""

from __future__ import annotations

import pytest

from bench.page.comparison import Ahead, Compared, ahead_text, comparison, who_is_ahead
from bench.page.spark_figures import own
from bench.results import (
    AbortCost,
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
    """Everything that is compared; `factor` is how slow, and how large, the system is."""
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
        SparkSink(system, own(system), 1_000_000, 100, [2e5 / factor]),
        SparkSource(
            system, own(system), {}, 9, 9, 0, [1e5 / factor], histogram(100 * factor, 900), [3e5 / factor]
        ),
        ToolProduce(system, 5, 0, 1024, 1e8, 900, 900, 900, 0.5),
        ToolProduce(system, 5, 5000, 1024, 5e6, int(4 * factor), 900, int(7 * factor), 0.5),
        ToolTotals(system, "4.3.1", 0, 900, 900, 900, 1e8, 20.0 * factor, int(80 * factor * 2**20)),
    )


def test_a_case_made_by_hand() -> None:
    results = Results({})
    add_system(results, "local-copy os", 1)
    add_system(results, "kafka", 4)
    found = comparison(results)
    assert [each.pairs[1] for each in found] == [
        (3.0, 12.0),
        (10.0, 40.0),
        (5.0, 20.0),
        (20.0, 80.0),
        (5.0, 20.0),
        (20.0, 80.0),
        (5.0, 20.0),
        (20.0, 80.0),
        (2.0, 8.0),
        (200.0, 50.0),
        (184.0, 46.0),
        (100.0, 25.0),
        (200.0, 50.0),
        (50.0, 12.5),
        (250.0, 62.5),
        (60.0, 240.0),
        (90.0, 360.0),
        (4.0, 16.0),
        (7.0, 28.0),
        (20.0, 80.0),
        (80.0, 320.0),
        (None, None),
        (2e5, 5e4),
        (None, None),
        (None, None),
        (3e5, 7.5e4),
        (1e5, 2.5e4),
        (100.0, 400.0),
    ]
    assert {each.ahead[1] for each in found} == {Ahead("faircopy", 4.0), None}
    assert {(each.pairs[0], each.ahead[0]) for each in found} == {((None, None), None)}


def ahead_of(results: Results, figure: str) -> Compared:
    """What is said of one figure."""
    return next(each for each in comparison(results) if each.figure == figure)


@pytest.mark.parametrize("figure", ["memory when idle", "transactions of 4 partitions, 8 producers"])
def test_those_that_promise_the_same_are_compared(figure: str) -> None:
    """If there is no Kafka with fsync, faircopy with fsync stands beside the other one."""
    results = Results({})
    add_system(results, "local-copy fsync", 2)
    add_system(results, "local-copy os", 1)
    add_system(results, "kafka", 1)
    assert ahead_of(results, figure).ahead == [Ahead("Kafka", 2.0), Ahead("level", 1.0)]
    add_system(results, "kafka fsync", 8)
    assert ahead_of(results, figure).ahead == [Ahead("faircopy", 4.0), Ahead("level", 1.0)]


@pytest.mark.parametrize(
    ("ours", "kafka", "is_less_better", "who"),
    [
        (100, 116, True, "faircopy"),
        (100, 114, True, "level"),
        (114, 100, True, "level"),
        (116, 100, True, "Kafka"),
        (116, 100, False, "faircopy"),
        (100, 116, False, "Kafka"),
    ],
)
def test_close_figures_are_level(ours: float, kafka: float, is_less_better: bool, who: str) -> None:
    found = who_is_ahead(ours, kafka, is_less_better)
    assert found is not None and found.who == who


def test_what_is_said() -> None:
    assert ahead_text(Ahead("faircopy", 4_286.1)) == "faircopy, 4,300 times"
    assert ahead_text(Ahead("Kafka", 1.24)) == "Kafka, 1.2 times"
    assert ahead_text(Ahead("level", 1.1)) == "level"
    assert ahead_text(None) == "–"


def test_a_measure_without_a_single_time_wins_nothing() -> None:
    results = Results({})
    nothing = Histogram(0, 0.0, 0.0, 0.0, 0.0, 0.0, [])
    for system in ("local-copy fsync", "kafka"):
        results.add(
            *(Latency(system, count, 1, 0, 1, 0, [1.0], *[nothing] * 5) for count in (1, 4, 16)),
            Stall(system, histogram(1, 2), nothing, nothing, 10, 40, []),
        )
    measured = {each.figure for each in comparison(results) if any(each.ahead)}
    assert measured == {"transactions of one message, one producer"}


def test_latency_of_the_second_client_is_that_at_a_pace() -> None:
    results = Results({})
    add_system(results, "local-copy os", 1)
    found = ahead_of(results, "with Kafka's own client, transactions of 5 ms, send to ack, p50")
    assert found.pairs[1] == (4.0, None)
