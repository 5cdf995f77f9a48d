"""Fetch and ListOffsets for logs that also hold open and aborted transactions: the isolation level matters.

A read_committed reader sees the log up to the last stable offset, and is told which transactions in it were
aborted. A read_uncommitted reader gets the answers of the product's own handlers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Iterator, Sequence
from typing import Any

from bench.protocols.aborted_transactions import AbortedTransaction, put_aborted
from bench.protocols.marked_partition import MarkedPartition
from faircopy.api.fetch.answer import FetchPlanner
from faircopy.api.fetch.fetch import ROUTE as FETCH
from faircopy.api.fetch.fetch import FetchHandler
from faircopy.api.list_offsets import LATEST
from faircopy.api.list_offsets import ROUTE as LIST_OFFSETS
from faircopy.api.routes import ROUTES
from faircopy.datalog.read import ReadPlan
from faircopy.net.exchange import Exchange
from faircopy.partition.hosted import HostedPartition
from faircopy.serving.parts import Parts
from faircopy.serving.route import Body, Context, HotHandler, Message
from faircopy.storage.file import FileRange
from faircopy.storage.system import Buffer
from faircopy.wire.batch import LENGTH_OVERHEAD_BYTES, PLACE
from faircopy.wire.fetch import FetchPartition, FetchResult
from faircopy.wire.messages import RequestHeader

READ_COMMITTED = 1
ISOLATION_LEVEL_AT = 16  # in the body of a Fetch request
VERSIONS = range(FETCH.versions[0], 13)
"""Without topic ids, and with the isolation level always at the same place."""
WINDOW_BYTES = 64 << 10


def make_fetch(parts: Parts) -> HotHandler:
    """A Fetch handler that respects the isolation level."""
    uncommitted = FETCH.make(parts)
    committed = FetchHandler(parts, CommittedPlanner(parts.hosted, parts.settings)).handle

    def handle(exchange: Exchange, header: RequestHeader, frame: memoryview) -> Awaitable[None] | None:
        at = header.body_at + ISOLATION_LEVEL_AT
        is_committed = frame[at : at + 1] == bytes([READ_COMMITTED])
        return (committed if is_committed else uncommitted)(exchange, header, frame)

    return handle


class CommittedPlanner(FetchPlanner):
    """The answers for a read_committed reader."""

    def plan(self, asked: FetchPartition) -> tuple[HostedPartition, ReadPlan | None]:
        partition, plan = super().plan(asked)
        return partition, None if plan is None else marked(partition).stable_part(plan)

    def result_of(self, asked: FetchPartition, partition: HostedPartition) -> FetchResult:
        result = super().result_of(asked, partition)
        return result._replace(last_stable_offset=marked(partition).stable_offset)

    def encode(
        self, version: int, correlation_id: int, results: list[FetchResult], session_id: int
    ) -> list[Any]:
        pieces = super().encode(version, correlation_id, results, session_id)
        put_aborted(version, pieces, [self._aborted_in(result) for result in results if result.records])
        return pieces

    def _aborted_in(self, result: FetchResult) -> Sequence[AbortedTransaction]:
        assert isinstance(result.topic, str)
        partition = self.hosted.find(result.topic, result.partition)
        if partition is None or not marked(partition).has_aborted:
            return ()
        (records,) = result.records
        assert isinstance(records, Buffer | FileRange)
        return marked(partition).aborted_in(*offsets_of(records))


def marked(partition: HostedPartition) -> MarkedPartition:
    """The partition, with the type that all partitions of this broker have."""
    assert isinstance(partition, MarkedPartition)
    return partition


def offsets_of(records: Buffer | FileRange) -> tuple[int, int]:
    """The first offset, and one that is greater than that of each transaction's first batch in here."""
    offsets = list(base_offsets(records))
    return offsets[0], offsets[-1] + 1


def base_offsets(records: Buffer | FileRange) -> Iterator[int]:
    """The base offsets of all batches, even of one that is cut at the end."""
    window: Buffer = b""
    at = window_at = 0
    while at + PLACE.size <= len(records):
        if at + PLACE.size > window_at + len(window):
            window, window_at = part_of(records, at), at
        offset, length = PLACE.unpack_from(window, at - window_at)
        yield offset
        at += LENGTH_OVERHEAD_BYTES + length


def part_of(records: Buffer | FileRange, at: int) -> Buffer:
    """A part of the records from a byte on."""
    if isinstance(records, FileRange):
        return records.file.read(min(WINDOW_BYTES, records.size - at), records.position + at)
    return memoryview(records)[at:]


async def list_offsets(request: Message, context: Context) -> Body:
    """ListOffsets: the log of a read_committed reader ends at the last stable offset."""
    answer = await LIST_OFFSETS.handle(request, context)
    if request.isolation_level == READ_COMMITTED:
        for topic, row in latest_rows(request, answer):
            partition = context.parts.hosted.find(topic, row["partition_index"])
            if partition is not None:
                row["offset"] = min(row["offset"], marked(partition).stable_offset)
    return answer


def latest_rows(request: Message, answer: Body) -> Iterator[tuple[str, Body]]:
    """The topic and the answer for each partition that was asked for the end of its log."""
    for asked_topic, topic in zip(request.topics, answer["topics"], strict=True):
        for asked, row in zip(asked_topic.partitions, topic["partitions"], strict=True):
            if asked.timestamp == LATEST and not row["error_code"]:
                yield topic["name"], row


ROUTES_OF_MARKERS = ROUTES | {
    FETCH.schema.api_key: dataclasses.replace(FETCH, make=make_fetch, versions=VERSIONS),
    LIST_OFFSETS.schema.api_key: dataclasses.replace(LIST_OFFSETS, handle=list_offsets),
}
