"""Pieces of the log as Arrow rows for Spark: the columns of its Kafka source, and txid."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from faircopy.client import Piece, TransactionSpan
from faircopy.publish.columns import decode
from faircopy.publish.record_run import LoggedBatch, Source
from faircopy.spark.splits import Split
from faircopy.wire.batch import read_header


class Txids:
    """Which transaction a batch belongs to."""

    def __init__(self, spans: Sequence[TransactionSpan]) -> None:
        self._spans = spans
        self._firsts = [span.first_offset for span in spans]

    def of(self, offset: int) -> str | None:
        """The transaction of the message at an offset; None if it is of none."""
        number = bisect_right(self._firsts, offset) - 1
        if number < 0 or self._spans[number].last_offset < offset:
            return None
        return self._spans[number].txid


def rows_of(piece: Piece, split: Split, txids: Txids) -> Iterator[pa.RecordBatch]:
    """The rows of a piece that are in a split, with the columns of a plain table."""
    for rows in decode(logged(piece, split, txids)):
        batch = rows.batch
        if piece.next_offset > split.end:
            batch = batch.filter(pc.less(batch.column("offset"), split.end))
        if batch.num_rows:
            yield batch


def logged(piece: Piece, split: Split, txids: Txids) -> Iterator[LoggedBatch]:
    """The batches of a piece that reach into a split."""
    source, at = Source(split.topic, split.partition, split.start), 0
    while at < len(piece.data):
        header = read_header(piece.data, at)
        if header.base_offset >= split.end:
            return
        yield LoggedBatch(source, header, piece.data, at, txids.of(header.base_offset))
        at += header.size_bytes


def for_spark(batch: pa.RecordBatch, schema: Any) -> pa.RecordBatch:
    """Rows with exactly the types of an Arrow schema, which Spark compares."""
    columns = [batch.column(name).cast(schema.field(name).type) for name in schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
