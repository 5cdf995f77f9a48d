"""Parts of rows that are joined by one kernel, against joining them in a loop."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from faircopy.spark.interleaving import RowPart, interleaved, varint_part
from faircopy.spark.rows import order_of
from faircopy.spark.varints import MOST, sizes_of
from faircopy.wire.records import varint
from tests.many import many

CELL = st.none() | st.binary(max_size=20)


@given(st.data(), st.integers(1, 60))
def test_rows_are_their_parts_in_order(data: st.DataObject, rows: int) -> None:
    arrays = data.draw(st.lists(many(CELL, 40).filter(bool), min_size=1, max_size=4))
    places = [[data.draw(st.integers(0, len(array) - 1)) for _ in range(rows)] for array in arrays]
    parts = [
        RowPart(pa.array([b"skipped", *array], pa.binary()).slice(1), np.array(its, np.int64))
        for array, its in zip(arrays, places, strict=True)
    ]
    found = interleaved(parts)
    expected = [
        b"".join(array[its[row]] or b"" for array, its in zip(arrays, places, strict=True))
        for row in range(rows)
    ]
    assert [bytes(found.section(row, row + 1)) for row in range(rows)] == expected
    assert bytes(found.section(0, rows)) == b"".join(expected)


@given(many(st.integers(-1, MOST) | st.integers(-1, 1 << 40), 50))
def test_varints_come_out_of_a_table_or_not(values: list[int]) -> None:
    numbers = np.array(values, np.int64)
    part = varint_part(numbers)
    assert part.array.take(pa.array(part.places)).to_pylist() == [varint(value) for value in values]
    assert sizes_of(numbers).tolist() == [len(varint(value)) for value in values]


@given(many(st.integers(0, 5) | st.integers(0, 100_000), 60))
def test_rows_are_ordered_by_partition(partitions: list[int]) -> None:
    expected = sorted(range(len(partitions)), key=lambda row: partitions[row])
    assert order_of(np.array(partitions, np.int64)).tolist() == expected
