"""What a reader makes of a piece of a log that ends within a batch."""

from __future__ import annotations

from faircopy.client.reading import whole_batches
from faircopy.wire.records import NewRecord, build_batch


def test_batches_that_are_cut_are_left_for_the_next_piece() -> None:
    first = build_batch([NewRecord(b"a"), NewRecord(b"b")], base_offset=5)
    second = build_batch([NewRecord(b"c")], base_offset=7)
    assert whole_batches(first + second, 5) == (first + second, 8)
    assert whole_batches(first + second[:-1], 5) == (first, 7)
    assert whole_batches(first[:-1], 5) == (b"", 5)
    assert whole_batches(b"", 5) == (b"", 5)
