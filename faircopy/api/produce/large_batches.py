"""Counts the records of large batches on disk threads, in steps: on the event loop it would take too long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from faircopy.loop.pace import ClientGone
from faircopy.storage.disk_pool import DiskPool
from faircopy.wire.batch import COMPRESSION_MASK, HEADER_BYTES, BatchHeader
from faircopy.wire.compression import Bytes, decompress_pieces
from faircopy.wire.record_count import RecordCounter, ensure_room
from faircopy.wire.records import DECOMPRESSED_BYTES_AT_MOST
from faircopy.wire.timestamps import TimeRange, TimestampClaim, TimestampRange, Timestamps

BATCHES_AT_ONCE = 2
PIECE_BYTES = 64 << 10
STEP_BYTES = 1 << 20
STEP_RECORDS = 10_000
DECOMPRESSED_BYTES_MAX = 64 << 20
DECOMPRESSED_GROWTH = 4  # a batch of more than 16 MiB may grow to four times its size


class LargeBatches:
    """Checks a few batches at a time, each in steps of a few milliseconds; others have their turn in between.

    gzip and zstd need little memory, whatever the batch holds. lz4 and snappy need as much as it decompresses
    to, up to a bound.
    """

    def __init__(self, disk: DiskPool) -> None:
        self._disk = disk
        self._room = asyncio.Semaphore(BATCHES_AT_ONCE)

    async def check(
        self, batch: memoryview, header: BatchHeader, needs_least: bool, is_wanted: Callable[[], bool]
    ) -> TimeRange:
        """The range of the records' times; its least one is exact if `needs_least`.

        Raises InvalidBatch or RecordsError unless the batch holds as many records as its header says,
        InvalidTimestamp, and ClientGone between two steps if the check is not wanted any more.
        """
        async with self._room:
            claim = TimestampClaim(header)
            await self._count(batch, header, claim, is_wanted)
            times = claim.borne_out(needs_least)
            if times is None:
                decoded = TimestampRange(header)
                await self._count(batch, header, decoded, is_wanted)
                times = decoded.range
            return times

    async def _count(
        self, batch: memoryview, header: BatchHeader, times: Timestamps, is_wanted: Callable[[], bool]
    ) -> None:
        limit_bytes = max(DECOMPRESSED_BYTES_MAX, DECOMPRESSED_GROWTH * len(batch))
        limit_bytes = max(min(limit_bytes, DECOMPRESSED_BYTES_AT_MOST), len(batch))
        ensure_room(limit_bytes, header.records)
        counter = RecordCounter(header.records, times)
        steps = pieces(batch, header.attributes & COMPRESSION_MASK, limit_bytes)
        while await self._disk.run(take_step, steps, counter):
            if not is_wanted():
                raise ClientGone("the client disconnected before its batch was checked")
        counter.finish()


def pieces(batch: memoryview, codec: int, limit_bytes: int) -> Iterator[Bytes]:
    """The records section, decompressed, in pieces of about PIECE_BYTES."""
    waiting: list[Bytes] = []
    size = 0
    for piece in decompress_pieces(codec, batch[HEADER_BYTES:], limit_bytes):
        if size + len(piece) < PIECE_BYTES:
            waiting.append(piece)
            size += len(piece)
            continue
        view = memoryview(b"".join((*waiting, piece)) if waiting else piece)
        waiting, size = [], 0
        for at in range(0, len(view), PIECE_BYTES):
            yield view[at : at + PIECE_BYTES]
    if waiting:
        yield b"".join(waiting)


def take_step(steps: Iterator[Bytes], counter: RecordCounter) -> bool:
    """Count the records of some more pieces. Returns False if there are none left."""
    least_left = counter.left - STEP_RECORDS
    fed_bytes = 0
    for piece in steps:
        counter.feed(piece)
        fed_bytes += len(piece)
        if fed_bytes >= STEP_BYTES or counter.left <= least_left:
            return True
    return False
