"""What a log has after its checkpoint is written again by a start, in the same place (I6)."""

from __future__ import annotations

from pathlib import Path

from tests.unit.copier.partition_bench import PartitionBench, run


def test_nothing_stands_twice(tmp_path: Path) -> None:
    async def test(bench: PartitionBench) -> None:
        await bench.plain(b"checkpointed")
        assert await bench.visible() == [b"checkpointed"]
        await bench.partition.checkpoint()
        await bench.plain(b"not")
        assert await bench.visible() == [b"checkpointed", b"not"]
        end = bench.log.end
        bench.restart()
        assert await bench.visible() == [b"checkpointed", b"not"]
        assert bench.log.end == end

    run(tmp_path, test)
