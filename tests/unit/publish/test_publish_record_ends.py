"""The ends of records that are found many at once, against those found one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.publish.record_ends import walk
from faircopy.wire.records import varint
from tests.many import many

SIZES = st.sampled_from([6, 7, 63, 64, 65, 130, 9000]) | st.integers(-3, 300)
RUN = st.tuples(SIZES, st.integers(1, 9) | st.integers(1, 700))


def ends_one_by_one(data: bytes, at: int, stop: int, records: int) -> list[int]:
    """As slowly as can be."""
    found: list[int] = []
    for _ in range(records):
        value, shift = 0, 0
        while at < len(data) and shift < 35:
            value |= (data[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 128:
                break
        else:
            return found
        length = (value >> 1) ^ -(value & 1)
        if length < 6 or at + length > stop:
            return found
        at += length
        found.append(at)
    return found


@given(many(RUN, 6), st.binary(max_size=12), st.integers(0, 40), st.integers(0, 2500), st.integers(0, 5))
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_ends_are_those_found_one_by_one(
    kind: type, runs: list[tuple[int, int]], rest: bytes, missing: int, records: int, skipped: int
) -> None:
    body = b"".join(varint(size) + b"\x0c" * max(0, size) for size, count in runs for _ in range(count))
    data = b"\x0c" * skipped + body + rest
    stop = max(skipped, len(data) - missing)
    ends = [-1]
    walk(kind(data), skipped, stop, records, ends)
    assert ends == [-1, *ends_one_by_one(data, skipped, stop, records)]


@given(st.binary(max_size=200), st.integers(0, 40))
def test_garbage_gives_the_same_ends(data: bytes, records: int) -> None:
    ends: list[int] = []
    walk(data, 0, len(data), records, ends)
    assert ends == ends_one_by_one(data, 0, len(data), records)
