"""The batches of one partition's cut, read from the broker's log files and checked.

The log is read in pieces of two megabytes. Every batch must match its CRC and begin at the offset where the
one before it ended, so a publication is never built from bytes that are not exactly the log's.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

from crc32c import crc32c

from faircopy.errors import FaircopyError
from faircopy.publish.files import Files
from faircopy.publish.record_run import LoggedBatch, Source
from faircopy.publish.requests import Chunk, Cut
from faircopy.wire.batch import (
    CRC_START,
    HEADER_BYTES,
    LENGTH_OVERHEAD_BYTES,
    PLACE,
    BatchHeader,
    read_header,
)

PIECE_BYTES = 2 * 1024 * 1024


class LogMismatchError(FaircopyError):
    """The bytes of a chunk are not the batches that the request names. Nothing was published."""


def read_batches(files: Files, cut: Cut, first_offset: int) -> Iterator[LoggedBatch]:
    """The batches with offsets from `first_offset` to before the cut's end; the first may begin before.

    Whole batches outside of these are skipped. Raises LogMismatchError, or OSError.
    """
    source = Source(cut.topic, cut.partition, first_offset)
    txids = _TxIds(cut)
    expected = first_offset
    for chunk in cut.chunks:
        for position, header, data, at in _batches(files, chunk):
            base_offset, after = header.base_offset, header.last_offset + 1
            if after <= first_offset or base_offset >= cut.end_offset:
                continue
            if why := _flaw(header, data, at) or _misplaced(base_offset, after, expected, first_offset, cut):
                raise _mismatch(chunk, position, why)
            expected = after
            yield LoggedBatch(source, header, data, at, txids.of(base_offset))
    if expected < cut.end_offset:
        raise LogMismatchError(
            f"reading the log of {cut.topic}-{cut.partition} for a plain table: the chunks end at"
            f" offset {expected}, the cut at {cut.end_offset}"
        )


def _flaw(header: BatchHeader, data: bytes, at: int) -> str | None:
    """Why the bytes are not a batch of a log, or None."""
    if header.magic != 2 or not 0 < header.records == header.last_offset_delta + 1:
        return "no record batch of format v2 begins there"
    if crc32c(memoryview(data)[at + CRC_START : at + header.size_bytes]) != header.crc:
        return f"the record batch of offset {header.base_offset} does not match its CRC"
    return None


def _misplaced(base_offset: int, after: int, expected: int, first_offset: int, cut: Cut) -> str | None:
    """Why a batch that ends before offset `after` is in the wrong place, or None."""
    if base_offset != expected and not base_offset < first_offset == expected:
        return f"offset {expected} should follow, and a batch of offset {base_offset} does"
    if after > cut.end_offset:
        return f"a batch to offset {after - 1} crosses the end of the cut at {cut.end_offset}"
    return None


def _batches(files: Files, chunk: Chunk) -> Iterator[tuple[int, BatchHeader, bytes, int]]:
    """Each batch of a chunk: its byte in the file, its header, a piece of the file, its byte in the piece."""
    position, end, want = chunk.position, chunk.position + chunk.size, PIECE_BYTES
    while position < end:
        data = files.read(Path(chunk.path), position, min(want, end - position))
        at = 0
        while (size := _batch_size(data, at)) <= len(data) - at:
            if size < HEADER_BYTES:
                raise _mismatch(chunk, position + at, f"a batch claims {size} bytes")
            yield position + at, read_header(data, at), data, at
            at += size
        position += at
        if len(data) < min(want, end - position + at) or size > end - position > 0:
            raise _mismatch(
                chunk, position, f"the batch there goes beyond the chunk or the file: {size} bytes"
            )
        want = max(PIECE_BYTES, size)


def _batch_size(data: bytes, at: int) -> int:
    """The size of the batch at `at`; if its length is not in `data`, the size that it has at least."""
    if len(data) - at < PLACE.size:
        return HEADER_BYTES
    length: int = PLACE.unpack_from(data, at)[1]
    return length + LENGTH_OVERHEAD_BYTES


def _mismatch(chunk: Chunk, position: int, why: str) -> LogMismatchError:
    return LogMismatchError(f"reading the log for a plain table: {chunk.path} at {position}: {why}")


class _TxIds:
    """The transaction of each batch of a cut; a batch lies wholly within one, or in none."""

    def __init__(self, cut: Cut) -> None:
        self._spans = sorted(cut.spans)
        self._firsts = [first for first, _, _ in self._spans]

    def of(self, offset: int) -> str | None:
        number = bisect_right(self._firsts, offset) - 1
        if number < 0 or self._spans[number][1] < offset:
            return None
        return self._spans[number][2]
