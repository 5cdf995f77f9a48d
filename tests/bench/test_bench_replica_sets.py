"""The measure of replica sets, with as little of everything as possible: its rows have what it measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from bench.__main__ import is_asked_for
from bench.load.clients import serve
from bench.measures.latency import Cell
from bench.measures.replica_sets import Work
from bench.profile import SMOKE, SetsPlan
from bench.results import Results, SetMessages, SetTransactions
from bench.run import Run
from bench.systems.faircopy_set import FaircopySet

NAMES = ["replica set fsync", "local-copy fsync"]
ROLES = {"replica set fsync": ["leader", "follower 2", "follower 3"], "local-copy fsync": ["broker"]}
LITTLE = Work([Cell(2, 1, least=4), Cell(2, 2, pause_ms=1, least=4)], seconds=0.05, bytes_max=1_000_000)
ROUNDS = 2


def test_a_set_and_one_broker_take_turns(tmp_path: Path) -> None:
    results = Results({})
    run = Run(replace(SMOKE, sets=SetsPlan(NAMES, LITTLE, LITTLE, ROUNDS)), results, tmp_path, seed=1)
    steps = dict(run.steps())
    run.do("sets", steps["sets"], lambda _doing: None)
    assert results.skipped == []
    assert not run.has_failed
    assert [system.name for system in results.systems] == NAMES

    transactions: list[SetTransactions] = results.of(SetTransactions)
    cells = [(row.system, row.partitions, row.producers, row.pause_ms) for row in transactions]
    assert cells == [(name, 2, *cell) for name in NAMES for cell in ((1, 0), (2, 1))]
    for row in transactions:
        assert row.transactions == row.commit_to_ack.count + row.flushed_commit_to_ack.count >= 4 * ROUNDS
        assert len(row.per_second) == len(row.cpu_ms_per_transaction) == ROUNDS
        assert min(row.per_second) > 0

    messages: list[SetMessages] = results.of(SetMessages)
    assert [row.system for row in messages] == NAMES
    for each in messages:
        assert list(each.peak_memory_bytes) == list(each.cpu_seconds_per_gb) == ROLES[each.system]
        assert min(each.peak_memory_bytes.values()) > 20 << 20
        assert {len(rounds) for rounds in each.cpu_seconds_per_gb.values()} == {ROUNDS}
        assert len(each.produced_bytes_per_second) == ROUNDS
        assert each.send_to_ack.count > 0
    assert list(tmp_path.iterdir()) == [], "the data of this step is in nobody's way"


def test_a_run_ends_what_it_has_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the processes of a set whose warm-up fails."""
    begun: list[int] = []

    def fail(system: FaircopySet, _work: Work) -> None:
        serve(system.address)
        begun.extend(system.processes.values())
        raise TimeoutError("nothing came")

    monkeypatch.setattr("bench.measures.replica_sets.warm_up", fail)
    results = Results({})
    run = Run(replace(SMOKE, sets=SetsPlan(NAMES[:1], LITTLE, LITTLE, ROUNDS)), results, tmp_path, seed=1)
    run.do("sets", dict(run.steps())["sets"], lambda _doing: None)
    assert run.has_failed
    assert [each.what for each in results.skipped] == ["sets: replica set fsync"]
    assert len(begun) == 3
    assert not any(map(psutil.pid_exists, begun))


@pytest.mark.parametrize(
    ("only", "done"),
    [
        ((), {"floors", "sets", "systems", "latency"}),
        (("sets",), {"sets"}),
        (("floors", "latency"), {"floors", "systems", "latency"}),
    ],
)
def test_only_steps_that_need_the_systems_start_them(only: tuple[str, ...], done: set[str]) -> None:
    assert {step for step in ("floors", "sets", "systems", "latency") if is_asked_for(step, only)} == done
