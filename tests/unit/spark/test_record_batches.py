"""Batches that are made from Arrow columns, against those made record by record."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.client.outgoing import ProducerIdentity
from faircopy.spark.partitioning import LONG_KEY_BYTES, partitions_of_keys
from faircopy.spark.record_batches import BATCH_BYTES, CODECS, Columns, batch, compressed, pieces, records
from faircopy.spark.schema import HEADERS_TYPE
from faircopy.wire.murmur2 import partition_for
from faircopy.wire.records import NewRecord, build_batch, decode_records
from tests.many import many

BYTES = st.none() | st.binary(max_size=300)
HEADER = st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5))
ROW = st.tuples(BYTES, BYTES, st.none() | st.lists(HEADER, max_size=3))
RowOfColumns = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]] | None]
TIME_MS = 1_700_000_000_000


def columns(rows: list[RowOfColumns]) -> Columns:
    headers = [
        None if row[2] is None else [{"key": key, "value": value} for key, value in row[2]] for row in rows
    ]
    return Columns(
        pa.array([row[0] for row in rows], pa.binary()),
        pa.array([row[1] for row in rows], pa.binary()),
        pa.array(headers, HEADERS_TYPE),
    )


@given(many(ROW, 300).filter(bool), st.integers(0, 10))
def test_batches_are_those_of_the_slow_way(rows: list[RowOfColumns], skipped: int) -> None:
    padding: list[RowOfColumns] = [(b"skipped", b"skipped", None)] * skipped
    made = columns(padding + rows).slice(skipped, len(rows))
    section = records(made)
    expected = build_batch(
        [NewRecord(value, key, TIME_MS, tuple(headers or ())) for key, value, headers in rows],
        producer_id=7,
        producer_epoch=1,
        base_sequence=5,
        transactional=True,
    )
    assert batch(ProducerIdentity(7, 1), 5, section, len(rows), 0, TIME_MS) == expected


@pytest.mark.parametrize("name", CODECS)
def test_compressed_batches_are_read_again(name: str) -> None:
    rows: list[RowOfColumns] = [(b"%d" % n, b"value" * n, None) for n in range(200)]
    section = compressed(CODECS[name], records(columns(rows)))
    made = batch(ProducerIdentity(7, 1), 0, section, len(rows), CODECS[name], TIME_MS)
    assert [(record.key, record.value, None) for record in decode_records(made)] == rows


@given(many(st.none() | st.binary(max_size=2 * LONG_KEY_BYTES), 200), st.integers(1, 50))
def test_partitions_are_kafkas(keys: list[bytes | None], partitions: int) -> None:
    found = partitions_of_keys(pa.array([b"skipped", *keys], pa.binary()).slice(1), partitions)
    assert found.tolist() == [-1 if key is None else partition_for(key, partitions) for key in keys]


@given(many(st.integers(0, BATCH_BYTES * 2), 30))
def test_pieces_hold_every_row_once_and_are_small(sizes: list[int]) -> None:
    values = pa.array([bytes(size) for size in sizes], pa.binary())
    found = list(pieces(Columns(pa.nulls(len(sizes), pa.binary()), values, None)))
    assert [row for start, rows in found for row in range(start, start + rows)] == list(range(len(sizes)))
    for start, rows in found:
        assert rows == 1 or sum(sizes[start : start + rows]) <= BATCH_BYTES
