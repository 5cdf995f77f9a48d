"""Entries of format 3. They are only read, from segments that still exist. Little-endian.

     0  magic           u32  "FCE1"
     4  length          u32  header and payload, bytes
     8  crc             u32  CRC32C of bytes 12..length, seeded with the segment's seed
    12  as in format 4; the leader epoch is 0

So a header can't be checked without its payload.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from crc32c import crc32c

from faircopy.journal.entry import HEADER_BYTES, BadEntry, Entry, TransactionId

SEGMENT_MAGIC = b"FCJSEG01"
HEADER = struct.Struct("<4sIIBBhiIQQqqq")
assert HEADER.size == HEADER_BYTES
MAGIC = b"FCE1"
CRC = struct.Struct("<I")
CRC_AT = 8
CHECKED_AT = 12
POSITION_AT = 24


def decode_header(buffer: bytes | memoryview, at: int, position: int, seed: int) -> Entry:
    """The header at byte `at` of `buffer`, which has this `position`; no CRC is checked. Raises BadEntry."""
    if len(buffer) - at < HEADER_BYTES:
        raise BadEntry("cut short")
    (
        magic,
        length,
        _crc,
        kind,
        _flags,
        producer_epoch,
        leader_epoch,
        records,
        there,
        durable,
        previous,
        pid,
        number,
    ) = HEADER.unpack_from(buffer, at)
    if magic != MAGIC or length < HEADER_BYTES:
        raise BadEntry("no entry")
    if there != position:
        raise BadEntry(f"an entry with position {there}")
    transaction = TransactionId(pid, producer_epoch, number)
    return Entry(kind, position, length, records, leader_epoch, previous, transaction, durable)


def check(buffer: bytes | memoryview, at: int, length: int, seed: int) -> None:
    """Raise BadEntry unless the `length` bytes at `at` match the CRC in them."""
    if len(buffer) - at < length:
        raise BadEntry("cut short")
    (crc,) = CRC.unpack_from(buffer, at + CRC_AT)
    if crc32c(memoryview(buffer)[at + CHECKED_AT : at + length], seed) != crc:
        raise BadEntry("CRC does not match")


def find_headers(piece: bytes, position: int, seed: int) -> Iterator[int]:
    """The positions where a header may begin that lies completely in `piece`, which begins at `position`.

    A client's payload may be full of magic numbers: only those that are followed by their own position count.
    """
    last = len(piece) - HEADER_BYTES
    at = piece.find(MAGIC)
    while 0 <= at <= last:
        if piece[at + POSITION_AT : at + POSITION_AT + 8] == (position + at).to_bytes(8, "little"):
            yield position + at
        at = piece.find(MAGIC, at + 1)
