"""Entries, byte for byte: 64 bytes of header, then a payload. Little-endian.

     0  header crc      u32  CRC32C of bytes 4-63, seeded with the segment's seed
     4  length          u32  header and payload, bytes
     8  payload crc     u32  CRC32C of the payload, not seeded; 0 if there is none
    12  kind            u8
    13  flags           u8   0
    14  producer epoch  i16
    16  leader epoch    i32  of the leader that first wrote the entry
    20  records         u32  messages in the payload
    24  position        u64  of this entry in the journal
    32  durable         u64  the journal's synced position when this was written (I9 needs it)
    40  previous        i64  position of the same transaction's previous entry, or -1 (I3)
    48  producer id     i64  or -1
    56  number          i64  transaction number, or -1
    64  payload

The seed comes from the segment's random salt. A client can't know it, so it can't forge an entry inside a
payload; and old bytes that another file left on the disk are not mistaken for entries. The payload has a CRC
of its own, without a seed: another replica writes the same payload after a header with its own seed and
durable position, and does not have to compute that CRC again.

A header needs no magic number: it is valid if its CRC matches and it holds its own position.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from crc32c import crc32c

from faircopy.journal.entry import HEADER_BYTES, BadEntry, Entry, TransactionId

HEADER = struct.Struct("<IIIBBhiIQQqqq")
_CRC = struct.Struct("<I")
_CHECKED = struct.Struct("<IIBBhiIQQqqq")
CHECKED_AT = 4
PAYLOAD_CRC_AT = 8
FLAGS_AT = 13
POSITION_AT = 24
assert HEADER.size == HEADER_BYTES == CHECKED_AT + _CHECKED.size

LOW_BITS = 16
HIGH_AT = POSITION_AT + LOW_BITS // 8
HIGH_BYTES = 8 - LOW_BITS // 8


def encode_header(
    entry: Entry, payload: bytes | bytearray | memoryview, seed: int, payload_crc: int | None = None
) -> bytes:
    """The 64 bytes before `payload`, whose CRC is computed unless it is given."""
    if payload_crc is None:
        payload_crc = crc32c(payload) if payload else 0
    producer_id, producer_epoch, number = entry.transaction
    checked = _CHECKED.pack(
        entry.length,
        payload_crc,
        entry.kind,
        0,
        producer_epoch,
        entry.leader_epoch,
        entry.records,
        entry.position,
        entry.durable,
        entry.previous,
        producer_id,
        number,
    )
    return _CRC.pack(crc32c(checked, seed)) + checked


def decode_header(buffer: bytes | memoryview, at: int, position: int, seed: int) -> Entry:
    """The header at byte `at` of `buffer`, which has this `position`. Raises BadEntry.

    The payload is not checked.
    """
    if len(buffer) - at < HEADER_BYTES:
        raise BadEntry("cut short")
    (
        crc,
        length,
        _payload_crc,
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
    if crc32c(memoryview(buffer)[at + CHECKED_AT : at + HEADER_BYTES], seed) != crc or length < HEADER_BYTES:
        raise BadEntry("no entry, or its header's CRC does not match")
    if there != position:
        raise BadEntry(f"an entry with position {there}")
    transaction = TransactionId(pid, producer_epoch, number)
    return Entry(kind, position, length, records, leader_epoch, previous, transaction, durable)


def check(buffer: bytes | memoryview, at: int, length: int, seed: int) -> None:
    """Raise BadEntry unless header and payload of the `length` bytes at `at` match their CRCs."""
    if len(buffer) - at < length:
        raise BadEntry("cut short")
    whole = memoryview(buffer)[at : at + length]
    (header_crc,) = _CRC.unpack_from(whole, 0)
    if crc32c(whole[CHECKED_AT:HEADER_BYTES], seed) != header_crc:
        raise BadEntry("the header's CRC does not match")
    (payload_crc,) = _CRC.unpack_from(whole, PAYLOAD_CRC_AT)
    if crc32c(whole[HEADER_BYTES:]) != payload_crc:
        raise BadEntry("the payload's CRC does not match")


def find_headers(piece: bytes, position: int, seed: int) -> Iterator[int]:
    """The positions of all sound headers that lie completely in `piece`, which begins at `position`.

    They may begin at any byte, since not even the length of a damaged entry is known. Checking each byte
    would take seconds. So candidates are found by the high bytes of their own positions, which are the same
    for 64 KiB in a row.
    """
    view = memoryview(piece)
    # Zeros at the end, the space for more entries, hold no header. At positions below 64 KiB, whose high
    # bytes are zeros, each of them would be a candidate.
    size = min(len(piece) - HEADER_BYTES + 1, len(piece.rstrip(b"\0")))
    for start, end in _blocks(position, size):
        high = (position + start >> LOW_BITS).to_bytes(HIGH_BYTES, "little")
        stop = end + HIGH_AT + HIGH_BYTES - 1
        found = piece.find(high, start + HIGH_AT, stop)
        while found >= 0:
            at = found - HIGH_AT
            if _bears(view, at, position + at, seed):
                yield position + at
            found = piece.find(high, found + 1, stop)


def _blocks(position: int, size: int) -> Iterator[tuple[int, int]]:
    """The parts of `size` bytes from `position` on in which positions differ only in their low bytes."""
    start = 0
    while start < size:
        end = min(((position + start >> LOW_BITS) + 1 << LOW_BITS) - position, size)
        yield start, end
        start = end


def _bears(view: memoryview, at: int, position: int, seed: int) -> bool:
    """Whether there is a sound header with this position at byte `at`, where its high bytes were found."""
    low = view[at + POSITION_AT] | view[at + POSITION_AT + 1] << 8
    if low != position & 0xFFFF:
        return False
    try:
        decode_header(view, at, position, seed)
    except BadEntry:
        return False
    return True
