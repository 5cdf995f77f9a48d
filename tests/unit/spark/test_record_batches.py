"""Batches that are made from Arrow columns, against those made record by record."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.client.codecs import CODECS, compressed
from faircopy.client.outgoing import ProducerIdentity
from faircopy.spark.partitioning import LONG_KEY_BYTES, partitions_of_keys
from faircopy.spark.record_batches import (
    BATCH_BYTES,
    Columns,
    batch,
    divisions,
    header_lengths,
    headers_encoded,
    lengths,
    records,
)
from faircopy.spark.rows import Encoding
from faircopy.spark.schema import HEADERS_TYPE
from faircopy.spark.varints import constant, joined, varints
from faircopy.wire.murmur2 import partition_for
from faircopy.wire.records import NewRecord, build_batch, decode_records, varint
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
        headers_encoded(pa.array(headers, HEADERS_TYPE)),
    )


def section_of(made: Columns, order: list[int] | None = None) -> memoryview:
    """The records section of one batch of all rows, in an order."""
    rows = len(made.value)
    numbers = np.arange(rows)
    wanted = numbers if order is None else np.array(order)
    sizes = lengths(made.key), lengths(made.value), header_lengths(made.headers, rows)
    return records(made, wanted, numbers, *(each[wanted] for each in sizes)).section(0, rows)


@given(many(ROW, 300).filter(bool), st.integers(0, 10), st.randoms())
def test_batches_are_those_of_the_slow_way(
    rows: list[RowOfColumns], skipped: int, chosen: random.Random
) -> None:
    order = chosen.sample(range(len(rows)), len(rows))
    padding: list[RowOfColumns] = [(b"skipped", b"skipped", None)] * skipped
    padded = columns(padding + rows)
    made = Columns(*(None if each is None else each.slice(skipped) for each in padded))
    section = section_of(made, order)
    expected = build_batch(
        [
            NewRecord(value, key, TIME_MS, tuple(headers or ()))
            for key, value, headers in map(rows.__getitem__, order)
        ],
        producer_id=7,
        producer_epoch=1,
        base_sequence=5,
        transactional=True,
    )
    assert batch(ProducerIdentity(7, 1), 5, section, len(rows), 0, TIME_MS) == expected


def test_headers_count_for_the_size_of_batches() -> None:
    rows, size = 300, BATCH_BYTES // 100
    headers = pa.array([[{"key": "h", "value": bytes(size)}]] * rows, HEADERS_TYPE)
    table = pa.RecordBatch.from_arrays([pa.array([b"v"] * rows), headers], names=["value", "headers"])
    sections = [encoded.section for encoded in Encoding("a", lambda topic, _: 1, 0).encode(table)]
    assert len(sections) > 3
    assert all(len(section) <= BATCH_BYTES for section in sections)


@pytest.mark.parametrize("name", CODECS)
def test_compressed_batches_are_read_again(name: str) -> None:
    rows: list[RowOfColumns] = [(b"%d" % n, b"value" * n, None) for n in range(200)]
    section = compressed(CODECS[name], section_of(columns(rows)))
    made = batch(ProducerIdentity(7, 1), 0, section, len(rows), CODECS[name], TIME_MS)
    assert [(record.key, record.value, None) for record in decode_records(made)] == rows


@given(many(st.none() | st.binary(max_size=2 * LONG_KEY_BYTES), 200), st.integers(1, 50))
def test_partitions_are_kafkas(keys: list[bytes | None], partitions: int) -> None:
    column = pa.array([b"skipped", *keys], pa.binary()).slice(1)
    found = partitions_of_keys(column, lengths(column), partitions)
    assert found.tolist() == [-1 if key is None else partition_for(key, partitions) for key in keys]


@given(many(st.tuples(st.integers(0, 3), st.integers(0, BATCH_BYTES * 2)), 30))
def test_batches_are_small_and_of_one_partition(rows: list[tuple[int, int]]) -> None:
    partitions, sizes = np.array(sorted(rows), np.int64).reshape(-1, 2).T
    found = divisions(partitions, sizes)
    assert [row for start, end in found for row in range(start, end)] == list(range(len(rows)))
    for start, end in found:
        assert len(set(partitions[start:end])) == 1
        assert end == start + 1 or sizes[start:end].sum() <= BATCH_BYTES


@given(many(st.integers(-(1 << 62), 1 << 62) | st.integers(-5, 70_000), 50))
def test_varints_are_those_of_the_slow_way(values: list[int]) -> None:
    column = joined(varints(np.array(values, np.int64)), constant(7, len(values)))
    assert column.to_pylist() == [varint(value) + b"\7" for value in values]


@given(many(st.tuples(st.sampled_from("ab"), st.none() | st.binary(max_size=8)), 60))
def test_rows_are_encoded_by_topic_and_partition(rows: list[tuple[str, bytes | None]]) -> None:
    values = [b"%d" % number for number in range(len(rows))]
    table = pa.record_batch(
        [
            pa.array([topic for topic, _ in rows], pa.string()),
            pa.array([key for _, key in rows], pa.binary()),
            pa.array(values, pa.binary()),
        ],
        names=["topic", "Key", "VALUE"],
    )
    encoding = Encoding(None, lambda topic, _: {"a": 3, "b": 5}[topic], 4)
    found: dict[tuple[str, int], list[bytes | None]] = {}
    for encoded in encoding.encode(table):
        made = batch(ProducerIdentity(7, 1), 0, encoded.section, encoded.rows, 0, TIME_MS)
        got = [record.value for record in decode_records(made)]
        found.setdefault((encoded.topic, encoded.partition), []).extend(got)
    keyed = [
        (topic, partition_for(key, {"a": 3, "b": 5}[topic]), value)
        for (topic, key), value in zip(rows, values, strict=True)
        if key is not None
    ]
    assert sorted(value or b"" for got in found.values() for value in got) == sorted(values)
    for topic, partition, value in keyed:
        assert value in found[topic, partition]
    assert all(got == sorted(got, key=lambda value: int(value or b"")) for got in found.values())
