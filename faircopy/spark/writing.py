"""The rows of one task of the sink, on their way to the broker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from faircopy.client import BlockingMember
from faircopy.client.brokers import KnownTopic
from faircopy.client.codecs import compressed
from faircopy.spark.record_batches import batch
from faircopy.spark.rows import EncodedRows, Encoding


class TopicsOfTask:
    """The topics that a task writes to, as they are when their first row comes: so a key has one partition.
    They are looked up again only if a row names a partition that was not there then.
    """

    def __init__(self, member: BlockingMember) -> None:
        self._member = member
        self._found: dict[str, KnownTopic] = {}

    def partitions_of(self, topic: str, at_least: int) -> int:
        """The number of partitions of a topic, looked up again if it is not known to have at least so many.
        Raises RequestFailed, OutcomeUnknown.
        """
        known = self._found.get(topic)
        if known is None or known.partitions < at_least:
            now = self._member.topic(topic)
            # The id stays that of the first: if it is another now, the batch is not committed.
            known = self._found[topic] = now if known is None else known._replace(partitions=now.partitions)
        return known.partitions

    @property
    def ids(self) -> dict[str, bytes]:
        """Their ids, by name."""
        return {name: topic.topic_id for name, topic in self._found.items()}


def write_rows(
    member: BlockingMember, topic: str | None, codec: int, task: int, rows: Iterator[pa.RecordBatch]
) -> dict[str, bytes]:
    """Write the rows of a task as drafts of a member; `topic` is that of all of them, or None. When this
    returns, all are written. Returns the ids of their topics. Raises BadRow, RequestFailed, OutcomeUnknown.
    """
    topics = TopicsOfTask(member)
    encoding = Encoding(topic, topics.partitions_of, task)
    for each in rows:
        for encoded in encoding.encode(each):
            send(member, encoded, codec)
    member.flush()
    return topics.ids


def send(member: BlockingMember, rows: EncodedRows, codec: int) -> None:
    """Send one batch. It may wait in memory."""
    section, now_ms = compressed(codec, rows.section), time.time_ns() // 1_000_000
    encode = partial(batch, section=section, rows=rows.rows, codec=codec, time_ms=now_ms)
    member.send_batch(rows.topic, rows.partition, rows.rows, encode, rows.describe)
