"""The rows of one task of the sink, on their way to the broker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from faircopy.client import BlockingMember
from faircopy.spark.codecs import compressed
from faircopy.spark.record_batches import batch
from faircopy.spark.rows import EncodedRows, Encoding


def write_rows(
    member: BlockingMember, topic: str | None, codec: int, task: int, rows: Iterator[pa.RecordBatch]
) -> None:
    """Write the rows of a task as drafts of a member; `topic` is that of all of them, or None. When this
    returns, all are written. Raises BadRow, RequestFailed, OutcomeUnknown.
    """
    encoding = Encoding(topic, member.partitions_of, task)
    for each in rows:
        for encoded in encoding.encode(each):
            send(member, encoded, codec)
    member.flush()


def send(member: BlockingMember, rows: EncodedRows, codec: int) -> None:
    """Send one batch. It may wait in memory."""
    section, now_ms = compressed(codec, rows.section), time.time_ns() // 1_000_000
    encode = partial(batch, section=section, rows=rows.rows, codec=codec, time_ms=now_ms)
    member.send_batch(rows.topic, rows.partition, rows.rows, encode, rows.place)
