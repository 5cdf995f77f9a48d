"""How far rows and batches go, found by the index of a log and a few headers, against a list of all."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from unittest import mock

import pytest

from faircopy.datalog import index
from faircopy.hosting.batch_ends import BatchEnds
from faircopy.hosting.largest_cut import UNLIMITED, Batches, Filled
from faircopy.storage.disk_pool import DiskPool
from tests.unit.copier.partition_bench import PartitionBench, run

BATCHES = 200
INTERVAL_BYTES = 700


def test_rows_and_whole_batches_fill_the_room(tmp_path: Path) -> None:
    """Rows are exact. Bytes may be missed by an interval of the index."""
    chosen = random.Random(3)

    async def test(bench: PartitionBench) -> None:
        ends = [0]
        for number in range(BATCHES):
            values = [b"%d" % number * chosen.randint(1, 20) for _ in range(chosen.randint(1, 4))]
            ends.append(await bench.plain(*values) + len(values))
        await bench.visible()
        await bench.partition.checkpoint()
        bench.log._recent.clear()
        disk = DiskPool(asyncio.get_running_loop(), threads=1)
        for _ in range(300):
            step = random_step(chosen, ends)
            filled = await BatchEnds(bench.log).fill(step, disk)
            check(step, filled, ends)
        disk.close()

    with mock.patch.object(index, "INTERVAL_BYTES", INTERVAL_BYTES):
        run(tmp_path, test)


def random_step(chosen: random.Random, ends: list[int]) -> Batches:
    first, last = sorted(chosen.sample(range(ends[-1] + 1), 2))
    rows = chosen.choice([0, 1, chosen.randrange(10), chosen.randrange(300), UNLIMITED])
    size = chosen.choice([0, chosen.randrange(5_000), UNLIMITED])
    return Batches(0, first, last, rows, size, at_least_one=chosen.random() < 0.2)


def check(step: Batches, filled: Filled, ends: list[int]) -> None:
    last = min(step.end, step.offset + max(step.rows, step.at_least_one))
    assert step.offset <= filled.end <= last
    assert filled.end in {step.offset, last, *ends}, "whole batches, or as many rows as wanted"
    first_end = next(end for end in ends if end > step.offset)
    if step.at_least_one:
        assert filled.end >= min(first_end, last)
    if step.size == UNLIMITED:
        assert filled.end == last
    elif filled.end > first_end:
        assert filled.size <= step.size + INTERVAL_BYTES
    if not step.at_least_one and step.rows == 0:
        assert filled == Filled(step.offset, 0)


@pytest.mark.parametrize("size", [1, 100])
def test_a_log_of_one_batch(tmp_path: Path, size: int) -> None:
    async def test(bench: PartitionBench) -> None:
        await bench.plain(*[b"x"] * size)
        await bench.visible()
        disk = DiskPool(asyncio.get_running_loop(), threads=1)
        ends = BatchEnds(bench.log)
        assert (await ends.fill(Batches(0, 0, size, 0, 0), disk)).end == 0
        assert (await ends.fill(Batches(0, 0, size, 0, 0, at_least_one=True), disk)).end == 1
        assert (await ends.fill(Batches(0, 0, size, UNLIMITED, 0, at_least_one=True), disk)).end == size
        assert (await ends.fill(Batches(0, 0, size, size, UNLIMITED), disk)).end == size
        assert (await ends.fill(Batches(0, 0, size, size // 2, UNLIMITED), disk)).end == size // 2
        for start in range(size):
            one = Batches(0, start, size, 0, 0, at_least_one=True)
            assert (await ends.fill(one, disk)).end == start + 1
            within = Batches(0, start, size, UNLIMITED, 0, at_least_one=True)
            assert (await ends.fill(within, disk)).end == size, "a reader may begin within a batch"
        disk.close()

    run(tmp_path, test)
