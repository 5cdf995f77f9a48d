"""The Java client's own test vectors, and those of its partitioner."""

from __future__ import annotations

import pytest
from aiokafka.partitioner import murmur2 as theirs

from faircopy.wire.murmur2 import murmur2, partition_for

VECTORS = [
    (b"21", -973932308),
    (b"foobar", -790332482),
    (b"a-little-bit-long-string", -985981536),
    (b"a-little-bit-longer-string", -1486304829),
    (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    (b"abc", 479470107),
]


@pytest.mark.parametrize(("data", "expected"), VECTORS)
def test_known_hashes(data: bytes, expected: int) -> None:
    assert murmur2(data) == expected


@pytest.mark.parametrize(("key", "expected"), VECTORS)
def test_partitions_are_positive(key: bytes, expected: int) -> None:
    assert partition_for(key, 7) == (expected & 0x7FFFFFFF) % 7
    assert 0 <= partition_for(key, 7) < 7


def test_same_as_aiokafka() -> None:
    for size in range(64):
        key = bytes(range(size))
        assert murmur2(key) & 0xFFFFFFFF == theirs(key) & 0xFFFFFFFF
