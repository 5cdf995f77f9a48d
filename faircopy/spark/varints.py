"""Columns of varints, as bytes: what stands between the keys and values of records.

Pure; numpy does for all rows at once what `wire.records.varint` does for one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Integers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


class Varints(NamedTuple):
    """One varint in each row: its bytes, of which the first `sizes` count."""

    cells: Bytes
    sizes: Integers


def computed(values: Integers) -> Varints:
    """The zigzag varints of some integers."""
    zigzag = ((values << 1) ^ (values >> 63)).astype(np.uint64)
    widest = int(zigzag.max(initial=0)).bit_length()
    width = max(1, -(-widest // 7))
    shifts = np.arange(width, dtype=np.uint64) * np.uint64(7)
    cells = (zigzag[:, None] >> shifts & np.uint64(0x7F)).astype(np.uint8)
    sizes = np.ones(len(values), np.int64)
    for place in range(1, width):
        sizes += zigzag >= np.uint64(1) << np.uint64(7 * place)
    cells[np.arange(width) < (sizes - 1)[:, None]] |= 0x80
    return Varints(cells, sizes)


LEAST, MOST = -1, 50_000
TABLE = computed(np.arange(LEAST, MOST + 1, dtype=np.int64))
"""Those of the lengths and offsets that nearly all records have."""


def varints(values: Integers) -> Varints:
    """The zigzag varints of some integers; looked up if all are small."""
    if len(values) and values.min() >= LEAST and values.max() <= MOST:
        places = values - LEAST
        return Varints(TABLE.cells[places], TABLE.sizes[places])
    return computed(values)


def sizes_of(values: Integers) -> Integers:
    """The number of bytes of the varint of each integer."""
    are_small = bool(len(values)) and values.min() >= LEAST and values.max() <= MOST
    return TABLE.sizes[values - LEAST] if are_small else computed(values).sizes


def constant(byte: int, rows: int) -> Varints:
    """One byte, the same in each row."""
    return Varints(np.full((rows, 1), byte, np.uint8), np.ones(rows, np.int64))


def joined(*columns: Varints) -> Any:
    """The varints of each row, one after the other, as an Arrow array of binaries."""
    rows = len(columns[0].cells)
    ends = np.zeros(rows + 1, np.int32)
    np.cumsum(sum(column.sizes for column in columns), out=ends[1:])
    data = np.empty(int(ends[-1]), np.uint8)
    at = ends[:-1].astype(np.int64)
    for cells, sizes in columns:
        data[at] = cells[:, 0]
        for place in range(1, cells.shape[1]):
            longer = sizes > place
            data[at[longer] + place] = cells[longer, place]
        at = at + sizes
    return pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(ends), pa.py_buffer(data)])
