"""Bytes from several columns, row by row, one after the other: what a record is made of.

Arrow's `take` copies any elements of a binary array, in any order, next to each other. So if the columns are
one array, a single call both sorts the rows and joins their parts. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from faircopy.spark.varints import LEAST, MOST, TABLE, Integers, computed, joined


class RowPart(NamedTuple):
    """One part of each row: element `places[i]` of a binary array in row i. A null adds nothing."""

    array: Any
    places: Integers


class RowBytes(NamedTuple):
    """The bytes of all rows; row i ends at `ends[i + 1]`."""

    data: memoryview
    ends: npt.NDArray[np.int32]

    def section(self, start: int, end: int) -> memoryview:
        """The bytes of some rows in a row."""
        return self.data[int(self.ends[start]) : int(self.ends[end])]


SMALL_VARINTS = joined(TABLE)


def varint_part(values: Integers) -> RowPart:
    """The varint of each row; out of a table if all are small."""
    if len(values) and values.min() >= LEAST and values.max() <= MOST:
        return RowPart(SMALL_VARINTS.slice(0, int(values.max()) - LEAST + 1), values - LEAST)
    return RowPart(joined(computed(values)), np.arange(len(values)))


def interleaved(parts: Sequence[RowPart]) -> RowBytes:
    """The parts of each row, one after the other. Raises pa.ArrowInvalid for 2 GiB and more."""
    rows, count = len(parts[0].places), len(parts)
    places = np.empty((rows, count), np.int32)
    before = 0
    for number, part in enumerate(parts):
        np.add(part.places, before, out=places[:, number], casting="same_kind")
        before += len(part.array)
    found = pa.concat_arrays([part.array for part in parts]).take(pa.array(places.reshape(-1)))
    ends = np.frombuffer(found.buffers()[1], np.int32)[found.offset : found.offset + rows * count + 1]
    return RowBytes(memoryview(found.buffers()[2] or b""), ends[::count])
