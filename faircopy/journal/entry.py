"""Entries of a journal: 64 bytes of header, then a payload. Little-endian.

     0  magic           u32  "FCE1"
     4  length          u32  header and payload, bytes
     8  crc             u32  CRC32C of bytes 12..length, seeded with the segment's seed
    12  kind            u8
    13  flags           u8   0
    14  producer epoch  i16
    16  leader epoch    i32
    20  records         u32  messages in the payload
    24  position        u64  of this entry in the journal
    32  durable         u64  up to where the journal was fsynced when this was written (I9 needs it)
    40  previous        i64  position of the same transaction's previous entry, or -1 (I3)
    48  producer id     i64  or -1
    56  number          i64  transaction number, or -1
    64  payload

The seed comes from the segment's random salt. A client, who can't know it, can't forge an entry inside a payload.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from crc32c import crc32c

MAGIC = int.from_bytes(b"FCE1", "little")
MAGIC_BYTES = b"FCE1"
HEADER = struct.Struct("<IIIBBhiIQQqqq")
HEADER_BYTES = 64
assert HEADER.size == HEADER_BYTES
_BEFORE_CRC = struct.Struct("<III")
_AFTER_CRC = struct.Struct("<BBhiIQQqqq")
CRC_START = 12
assert _BEFORE_CRC.size == CRC_START and CRC_START + _AFTER_CRC.size == HEADER_BYTES
MAX_LENGTH = (1 << 32) - 1
NOWHERE = -1


class Kind(IntEnum):
    """What an entry says. 1-15 stand in data journals, 16-31 in metadata journals (DESIGN, section 3)."""

    DRAFT = 1
    PREPARED = 2
    APPLY = 3
    DISCARD = 4
    PLAIN = 5
    TRIM = 6
    BEGIN = 16
    ADD = 17
    PREPARE_COMMIT = 18
    PREPARE_ABORT = 19
    COMMITTED = 20
    ABORTED = 21
    FENCE = 22
    FORGET = 23
    UNCLEAN = 24


class TransactionId(NamedTuple):
    """TxId: names one transaction for ever. Written `pid.epoch.number`."""

    producer_id: int
    producer_epoch: int
    number: int

    def __str__(self) -> str:
        return f"{self.producer_id}.{self.producer_epoch}.{self.number}"


NO_TRANSACTION = TransactionId(-1, -1, -1)


class Entry(NamedTuple):
    """One entry's header, without what only the file needs; `length` counts header and payload."""

    kind: int
    position: int
    length: int
    records: int
    leader_epoch: int
    previous: int
    transaction: TransactionId
    durable: int

    @property
    def end(self) -> int:
        """The position just behind this entry."""
        return self.position + self.length

    @property
    def payload_bytes(self) -> int:
        return self.length - HEADER_BYTES


class BadEntry(Exception):
    """Bytes are not a whole and sound entry. Those who read a journal turn it into an error or a cut."""


def encode_header(entry: Entry, payload: bytes | bytearray | memoryview, seed: int) -> bytes:
    """The 64 bytes before `payload`."""
    producer_id, producer_epoch, number = entry.transaction
    after = _AFTER_CRC.pack(
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
    crc = crc32c(after, seed)
    if payload:
        crc = crc32c(payload, crc)
    return _BEFORE_CRC.pack(MAGIC, entry.length, crc) + after


def decode_header(buffer: bytes | memoryview, at: int, position: int) -> Entry:
    """The header at byte `at` of `buffer`, which stands at `position`; its CRC is not checked. Raises BadEntry."""
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
        raise BadEntry(f"an entry of position {there}")
    transaction = TransactionId(pid, producer_epoch, number)
    return Entry(kind, position, length, records, leader_epoch, previous, transaction, durable)


def check(buffer: bytes | memoryview, at: int, length: int, seed: int) -> None:
    """Raise BadEntry unless the `length` bytes at `at` fit the CRC in them."""
    if len(buffer) - at < length:
        raise BadEntry("cut short")
    (crc,) = struct.unpack_from("<I", buffer, at + 8)
    if crc32c(memoryview(buffer)[at + CRC_START : at + length], seed) != crc:
        raise BadEntry("CRC does not fit")
