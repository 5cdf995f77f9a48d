"""Writes segments of format 3, which the product only reads."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

from crc32c import crc32c

from faircopy.journal.entry import Entry
from faircopy.journal.segment import file_name

Old = tuple[Entry, bytes]  # an entry and its payload


def encode_header(entry: Entry, payload: bytes, seed: int) -> bytes:
    """The 64 bytes before `payload`."""
    producer_id, producer_epoch, number = entry.transaction
    rest = struct.pack(
        "<BBhiIQQqqq",
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
    return struct.pack("<4sII", b"FCE1", entry.length, crc32c(payload, crc32c(rest, seed))) + rest


def encode_segment_header(base: int, salt: int, journal: bytes) -> bytes:
    """The first 64 bytes of a segment file."""
    head = struct.pack("<8sQQ20s16x", b"FCJSEG01", base, salt, journal)
    return head + struct.pack("<I", crc32c(head))


def seed_of(salt: int) -> int:
    """What the CRCs of a segment's entries are seeded with."""
    return crc32c(struct.pack("<Q", salt))


def write_segment(
    directory: Path, journal: bytes, base: int, entries: Iterable[Old], *, salt: int = 99, reserved: int = 0
) -> Path:
    """A segment file with these entries, and space that is reserved for more."""
    content = encode_segment_header(base, salt, journal)
    for entry, payload in entries:
        content += encode_header(entry, payload, seed_of(salt)) + payload
    path = directory / file_name(base)
    path.write_bytes(content + bytes(reserved))
    return path
