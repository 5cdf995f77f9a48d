"""Each benchmark of a hot path works: it runs once, and nothing is measured."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.micro.test_hot_paths import *  # noqa: F403 - all its tests


@pytest.fixture
def benchmark(benchmark: BenchmarkFixture) -> BenchmarkFixture:
    """It calls what it is given, and does not measure."""
    benchmark.disabled = True
    return benchmark
