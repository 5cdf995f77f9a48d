"""The values of the state store, sealed: LMDB keeps no checksums, so each value has its own.

    0  crc    u32 little-endian  CRC32C of table name, length of the key, key and value
    4  value

The checksum covers the table and the key, so a value in the wrong place does not match either.
"""

from __future__ import annotations

import struct
from pathlib import Path

from crc32c import crc32c

from faircopy.errors import FaircopyError

_CRC = struct.Struct("<I")
CRC_BYTES = _CRC.size


class DamagedState(FaircopyError):
    """The file of the state store is damaged at a place that was read."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(
            f"{path} is damaged: {what}. See all that is damaged with faircopy verify, and restore the data "
            f"directory from a backup"
        )


class DamagedRecord(DamagedState):
    """A record does not match its checksum."""

    def __init__(self, path: Path, table: str, key: bytes) -> None:
        super().__init__(path, f"in table {table}, the record of key {key.hex()} does not match its checksum")


def seal(table: bytes, key: bytes, value: bytes) -> bytes:
    """The bytes to store for a value."""
    return _CRC.pack(_checksum(table, key, value)) + value


def is_sound(table: bytes, key: bytes, sealed: bytes) -> bool:
    """Whether the stored bytes still match their checksum."""
    if len(sealed) < CRC_BYTES:
        return False
    stored: int = _CRC.unpack_from(sealed)[0]
    return _checksum(table, key, sealed[CRC_BYTES:]) == stored


def _checksum(table: bytes, key: bytes, value: bytes) -> int:
    # The length keeps the end of a key from being read as the start of a value.
    return int(crc32c(value, crc32c(key, crc32c(table) ^ len(key))))
