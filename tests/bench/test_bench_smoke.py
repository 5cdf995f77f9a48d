"""The benchmark itself, with as little of everything as possible: results and page have what it measured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.results import AbortCost, Latency, PlainLatency, Stall, Start, Throughput, load
from bench.systems.kafka import find_kafka
from tests.fetch.needed import needed

ROOT = Path(__file__).parents[2]
SYSTEMS = {"local-copy fsync", "kafka"}
SECONDS_MAX = 400.0


@pytest.mark.timeout(SECONDS_MAX + 60)
def test_a_run_leaves_results_and_a_page(tmp_path: Path) -> None:
    needed(find_kafka)
    command = [sys.executable, "-m", "bench", "smoke", "--output", str(tmp_path), "--data", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS_MAX)
    assert run.returncode == 0, run.stdout + run.stderr
    results = load(tmp_path / "smoke.json")
    assert results.skipped == []
    assert [row.system for row in results.of(Start)] == ["local-copy fsync"]
    for measure in (Latency, PlainLatency, Stall, AbortCost, Throughput):
        assert {row.system for row in results.of(measure)} == SYSTEMS
    page = (tmp_path / "smoke.html").read_text()
    assert all(system in page for system in SYSTEMS)
