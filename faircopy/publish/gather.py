"""Copies pieces of a buffer into one binary array, without a Python object for each piece.

The buffer is treated as a binary array in which pieces and the gaps between them alternate; Arrow's `take` of
every second element then does the copying.
"""

from __future__ import annotations

from array import array

import pyarrow as pa
import pyarrow.compute as pc

PIECES_AT_ONCE = 32 * 1024

_EVEN = pa.array(array("i", range(0, 2 * PIECES_AT_ONCE, 2)))
_HALVES = pa.array(array("i", (i // 2 for i in range(2 * PIECES_AT_ONCE))))
_ODDITY = pa.array(array("i", (i % 2 for i in range(2 * PIECES_AT_ONCE))))
_NULL_INDEX = pa.scalar(None, pa.int32())


def gather(data: pa.Buffer, at: pa.Array, length: pa.Array) -> pa.Array:
    """A binary array of the pieces of `data` at `at` (int64); null where `length` is -1.

    Pieces must be in ascending order and must not overlap. `data` must be smaller than 2 GiB.
    """
    steps = range(0, len(at), PIECES_AT_ONCE)
    parts = [_gather(data, at.slice(i, PIECES_AT_ONCE), length.slice(i, PIECES_AT_ONCE)) for i in steps]
    if len(parts) == 1:
        return parts[0]
    return pa.concat_arrays(parts) if parts else pa.array([], pa.binary())


def _gather(data: pa.Buffer, at: pa.Array, length: pa.Array) -> pa.Array:
    count = len(at)
    stops = pc.add(at, pc.max_element_wise(length, 0))
    starts_then_stops = pc.cast(pa.concat_arrays([at, stops]), pa.int32())
    turns = pc.add(
        _HALVES.slice(0, 2 * count), pc.multiply(_ODDITY.slice(0, 2 * count), pa.scalar(count, pa.int32()))
    )
    offsets = pc.take(starts_then_stops, turns)
    pieces = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, offsets.buffers()[1], data])
    return pc.take(pieces, pc.if_else(pc.equal(length, -1), _NULL_INDEX, _EVEN.slice(0, count)))
