"""The model of distance: the simulation agrees with the formulas, and the formulas with the protocols."""

from __future__ import annotations

from itertools import product

import pytest

from bench.distance import check, distances
from bench.distance.conditions import Conditions, apart, one_broker
from bench.distance.formulas import COMMIT, ONE_BROKER, ONE_BROKER_FLUSHED, VISIBLE, Formula
from bench.distance.grid import DURABLE_WRITES_MS, PARTITIONS, PROCESSING_MS, ROUND_TRIPS_MS
from bench.distance.protocols import PROTOCOLS, moments
from bench.results import Distance, Floor, Histogram, Latency, Results


@pytest.fixture(scope="module")
def grid() -> list[Distance]:
    return distances()


def test_the_grid_is_full(grid: list[Distance]) -> None:
    places = {
        (row.protocol, row.is_replicated, row.round_trip_ms, row.durable_write_ms, row.partitions)
        for row in grid
    }
    assert len(places) == len(grid) == 2 * len(PROTOCOLS) * 4 * 3 * 6


def test_simulation_is_formula_on_the_whole_grid(grid: list[Distance]) -> None:
    for row in grid:
        place = row.round_trip_ms, row.durable_write_ms, row.partitions
        conditions = apart(*place, row.processing_ms, is_replicated=row.is_replicated)
        assert row.commit_ms == pytest.approx(COMMIT[row.protocol].milliseconds(conditions)), row
        assert row.visible_ms == pytest.approx(VISIBLE[row.protocol].milliseconds(conditions)), row


def test_a_row_says_its_formulas_and_its_work(grid: list[Distance]) -> None:
    rows = {row.is_replicated: row for row in grid if row.protocol == "local-copy"}
    assert {row.processing_ms for row in grid} == {PROCESSING_MS}
    assert rows[False].commit_formula == "3 RTT + W + (2N + 4) p"
    assert rows[False].visible_formula == "3.5 RTT + 2 W + (3N + 4) p"
    assert rows[True].commit_formula == "4 RTT + W + (2N + 4) p"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_simulation_is_formula_on_one_broker(protocol: str) -> None:
    for round_trip_ms, write_ms, partitions in product(ROUND_TRIPS_MS, DURABLE_WRITES_MS, PARTITIONS[:5]):
        conditions = one_broker(round_trip_ms, write_ms, partitions)
        happened = moments(protocol, conditions, is_following=True)
        taken_ms = happened["acked"] - happened["begun"]
        flushed_ms = happened["acked"] - happened["flushed"]
        assert taken_ms == pytest.approx(ONE_BROKER[protocol].milliseconds(conditions))
        assert flushed_ms == pytest.approx(ONE_BROKER_FLUSHED[protocol].milliseconds(conditions))


def test_a_commit_of_faircopy_waits_for_one_durable_write_however_many_partitions() -> None:
    only_disk = [moments("local-copy", Conditions(0, 0, 7, partitions))["acked"] for partitions in PARTITIONS]
    assert only_disk == [7] * len(PARTITIONS)
    assert moments("markers", Conditions(0, 0, 7, 4))["acked"] == 3 * 7


def test_registering_partitions_is_durable_only_with_markers() -> None:
    registered = {name: moments(name, apart(10, 2, 4))["registered"] for name in PROTOCOLS}
    assert registered == {
        "local-copy": 20,
        "parallel-prepare": 20,
        "remote-copy": 10,
        "markers": 12,
        "none": 10,
    }


def test_only_five_requests_are_in_flight() -> None:
    for partitions, turns in ((5, 1), (6, 2), (10, 2), (11, 3)):
        happened = moments("none", one_broker(1, 2, partitions))
        assert happened["flushed"] - happened["registered"] == pytest.approx(turns * 3)


def test_the_next_transaction_waits_for_markers_alone() -> None:
    conditions = one_broker(0, 5, 4)
    waits = {}
    for name in PROTOCOLS:
        alone, following = moments(name, conditions), moments(name, conditions, is_following=True)
        waits[name] = (following["acked"] - following["begun"]) - (alone["acked"] - alone["begun"])
    assert waits == pytest.approx(
        {"local-copy": 0, "remote-copy": 0, "none": 0, "markers": 5 - 1, "parallel-prepare": 5 - 1}
    )


def test_a_node_works_on_one_message_at_a_time() -> None:
    happened = moments("none", apart(10, 0, 100, processing_ms=1))
    assert happened["flushed"] - happened["registered"] == pytest.approx(10 + 101)


def test_formulas_read_as_they_are_written() -> None:
    assert COMMIT["local-copy"].text() == "3 RTT + W + (2N + 4) p"
    assert COMMIT["local-copy"].text(is_replicated=True) == "4 RTT + W + (2N + 4) p"
    assert VISIBLE["markers"].text() == "2.5 RTT + 3 W + (2N + 3) p"
    assert ONE_BROKER["markers"].text() == "T + M + (F + 2) RTT + (F + 2) W"
    assert ONE_BROKER["none"].text() == "T + (F + 2) RTT + F W"
    assert Formula(1, 0).text() == "RTT"


def latency(system: str, partitions: int, commit_ms: float, producers: int = 1) -> Latency:
    taken = histogram(commit_ms)
    return Latency(
        system, partitions, producers, 0, 1, 100, [1.0], taken, taken, histogram(commit_ms / 2), taken, taken
    )


def histogram(milliseconds: float) -> Histogram:
    ms = milliseconds
    return Histogram(100, ms, ms, ms, ms, ms, [])


def test_the_model_takes_the_floors_of_the_run() -> None:
    results = Results({})
    results.floors = [
        Floor("loopback round trip", 0.1, "ms", ""),
        Floor("fdatasync", 1.0, "ms", ""),
        Floor("parallel fdatasync of 5 files", 2.0, "ms", ""),
    ]
    results.add(
        latency("local-copy fsync", 1, 3.0),
        latency("local-copy fsync", 4, 4.0),
        latency("local-copy fsync", 16, 5.0),
        latency("markers fsync", 16, 30.0),
        latency("remote-copy fsync", 16, 6.0),
        latency("local-copy fsync", 4, 9.0, producers=4),
        latency("local-copy os", 4, 1.0),
        latency("kafka fsync", 4, 20.0),
    )
    checked: list[tuple[object, ...]] = [
        (row.protocol, row.is_flushed, row.partitions, row.durable_write_ms, row.commit_model_ms)
        for row in check(results)
    ]
    assert checked == [
        ("local-copy", False, 1, 1.0, pytest.approx(1 + 3 * 0.1 + 1)),
        ("local-copy", True, 1, 1.0, pytest.approx(0.1 + 1)),
        ("local-copy", False, 4, 2.0, pytest.approx(1 + 3 * 0.1 + 2)),
        ("local-copy", True, 4, 2.0, pytest.approx(0.1 + 2)),
        ("local-copy", False, 16, 2.0, pytest.approx(1 + 6 * 0.1 + 2)),
        ("local-copy", True, 16, 2.0, pytest.approx(0.1 + 2)),
        ("markers", False, 16, 2.0, pytest.approx(1 + 0.9 + 6 * (0.1 + 2))),
        ("markers", True, 16, 1.0, pytest.approx(0.1 + 1)),
        ("remote-copy", False, 16, 1.0, pytest.approx(1 + 6 * 0.1 + 1)),
        ("remote-copy", True, 16, 1.0, pytest.approx(0.1 + 1)),
    ]
    measured = [row.commit_measured_ms for row in check(results)]
    assert measured == [3.0, 1.5, 4.0, 2.0, 5.0, 2.5, 30.0, 15.0, 6.0, 3.0]


def test_without_floors_nothing_is_checked() -> None:
    results = Results({})
    results.add(latency("local-copy fsync", 4, 4.0))
    assert check(results) == []
