"""Spans of transactions in a partition's log, in chunks: one record of the state store has up to 500.

    spans   identity, first offset u64 of the first span   -> chunk

A chunk begins with the byte FF and the number of spans (u16). Their columns follow, compressed with zlib: all
first offsets (u64), last offsets (u64), ranks (i64), and of the leads all producer ids (i64), epochs (i16)
and numbers (i64). Integers are big-endian. A transaction of one message costs about 10 bytes.

Pure.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from faircopy.journal.entry import TransactionId

CHUNK_SPANS_MAX = 500
_KEY = struct.Struct(">Q")
_HEAD = struct.Struct(">BH")
_MARK = 0xFF
_COLUMNS = "QQqqhq"
_ROW_BYTES = struct.calcsize(f">{_COLUMNS}")
_FAST = 1


class BadChunk(ValueError):
    """A record has no chunk of spans."""


class Span(NamedTuple):
    """The first and last offset, both inclusive, of a transaction in a partition's log; its rank, and the
    transaction that readers are shown as its name (`ApplyOrder`).
    """

    first_offset: int
    last_offset: int
    rank: int
    transaction: TransactionId

    @property
    def end_offset(self) -> int:
        """The offset after the last."""
        return self.last_offset + 1


def encode_chunk(spans: Sequence[Span]) -> bytes:
    """The value of a record with 1 to CHUNK_SPANS_MAX spans."""
    rows = [(first, last, rank, *transaction) for first, last, rank, transaction in spans]
    columns = zip(_COLUMNS, zip(*rows, strict=True), strict=True)
    packed = b"".join(struct.pack(f">{len(rows)}{kind}", *column) for kind, column in columns)
    return _HEAD.pack(_MARK, len(rows)) + zlib.compress(packed, _FAST)


def decode_chunk(value: bytes) -> list[Span]:
    """The spans of a stored record, in order. Raises BadChunk."""
    try:
        mark, count = _HEAD.unpack_from(value)
        packed = zlib.decompressobj().decompress(value[_HEAD.size :], count * _ROW_BYTES + 1)
    except (struct.error, zlib.error) as error:
        raise BadChunk(str(error)) from None
    if mark != _MARK or len(packed) != count * _ROW_BYTES:
        raise BadChunk(f"{len(packed)} bytes of {count} spans")
    return _spans_of(packed, count)


def _spans_of(packed: bytes, count: int) -> list[Span]:
    columns, at = [], 0
    for kind in _COLUMNS:
        column = struct.Struct(f">{count}{kind}")
        columns.append(column.unpack_from(packed, at))
        at += column.size
    firsts, lasts, ranks, *leads = columns
    return list(map(Span, firsts, lasts, ranks, map(TransactionId, *leads)))


def chunk_key(identity: bytes, offset: int) -> bytes:
    """The key of the chunk whose first span begins at `offset`; keys of one partition sort by offset."""
    return identity + _KEY.pack(offset)


def first_offset_of(key: bytes) -> int:
    """Where the first span of a stored record begins."""
    return int(_KEY.unpack(key[-_KEY.size :])[0])
