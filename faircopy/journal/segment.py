"""Segment files of a journal: their names, headers and sizes.

Header, 64 bytes, little-endian:

     0  magic          8 bytes  "FCJSEG01"
     8  base position  u64      of the first entry
    16  salt           u64      random; seeds the CRC of the segment's entries
    24  journal        20 bytes which journal this is, so that a file moved elsewhere is noticed
    44  zero           16 bytes
    60  crc            u32      CRC32C of bytes 0-59

An entry at position p is at byte 64 + p - base of the file. No entry spans two segments.
"""

from __future__ import annotations

import struct
from pathlib import Path

from crc32c import crc32c

from faircopy.journal.errors import DamagedJournal
from faircopy.storage.failures import Shortage
from faircopy.storage.file import File
from faircopy.storage.paths import delete_file, list_directory, rename_file, sync_directory, with_suffix
from faircopy.storage.system import Buffer

SUFFIX = ".journal"
MAGIC = b"FCJSEG01"
HEADER = struct.Struct("<8sQQ20s16xI")
HEADER_BYTES = 64
assert HEADER.size == HEADER_BYTES

FIRST_ALLOCATION_BYTES = 32 << 10
MAX_ALLOCATION_STEP_BYTES = 16 << 20
COPY_BYTES = 1 << 20


def file_name(base: int) -> str:
    """The name of the segment file that begins at this position; names sort by position."""
    return f"{base:020d}{SUFFIX}"


def encode_segment_header(base: int, salt: int, journal: bytes) -> bytes:
    """The first 64 bytes of a segment file."""
    head = HEADER.pack(MAGIC, base, salt, journal, 0)
    return head[:60] + struct.pack("<I", crc32c(head[:60]))


def decode_segment_header(head: bytes, path: Path, journal: bytes) -> tuple[int, int]:
    """The base position and the salt of a segment. Raises DamagedJournal."""
    if len(head) < HEADER_BYTES:
        raise DamagedJournal(f"{path} is cut short in its header: restore it from a backup", path, len(head))
    magic, base, salt, owner, crc = HEADER.unpack(head[:HEADER_BYTES])
    if magic != MAGIC or crc32c(head[:60]) != crc:
        raise DamagedJournal(
            f"{path} does not begin with a sound segment header: restore it from a backup", path, 0
        )
    if owner != journal:
        raise DamagedJournal(f"{path} belongs to another journal: put it back where it was", path, 24)
    return base, salt


def identity_in(directory: Path) -> bytes | None:
    """The identity of the journal whose segments are in a directory; None if there are none. Blocks. Raises
    DamagedJournal, StorageFailure.
    """
    found = with_suffix(SUFFIX, list_directory(directory))
    if not found:
        return None
    head = File(found[0], read_only=True).read(HEADER_BYTES, 0)
    if len(head) < HEADER_BYTES:
        raise DamagedJournal(
            f"{found[0]} is cut short in its header: restore it from a backup", found[0], len(head)
        )
    identity: bytes = HEADER.unpack(head)[3]
    return identity


class Segment:
    """One segment file, open for reading and writing."""

    __slots__ = ("allocated", "base", "file", "path", "salt", "seed")

    def __init__(self, path: Path, base: int, salt: int, file: File | None, allocated: int) -> None:
        self.path = path
        self.base = base
        self.salt = salt
        self.seed = crc32c(struct.pack("<Q", salt))
        self.file = file
        self.allocated = allocated

    @classmethod
    def planned(cls, directory: Path, base: int, salt: int) -> Segment:
        """A segment whose file is created by the first write to it."""
        return cls(directory / file_name(base), base, salt, None, 0)

    @classmethod
    def open(cls, path: Path, journal: bytes) -> Segment:
        """An existing segment. Raises DamagedJournal, StorageFailure."""
        return cls.of(path, File(path), journal)

    @classmethod
    def of(cls, path: Path, file: File, journal: bytes) -> Segment:
        """The segment in an open file. Raises DamagedJournal, StorageFailure."""
        base, salt = decode_segment_header(file.read(HEADER_BYTES, 0), path, journal)
        if path.name != file_name(base):
            raise DamagedJournal(
                f"{path} holds the segment {file_name(base)}: give it that name again", path, 8
            )
        return cls(path, base, salt, file, file.size())

    def make(self, journal: bytes, limit: int) -> None:
        """Create the file, with a durable header and name, and with room for its first entries. Blocks.

        The name appears only when the header is durable, so a bad header is always damage, never a torn
        write.
        """
        temporary = self.path.with_suffix(".tmp")
        delete_file(temporary)
        file = File(temporary, create=True)
        try:
            self.allocated = reserve(file, 0, FIRST_ALLOCATION_BYTES, limit)
        except Shortage:
            delete_file(temporary)
            raise
        file.write([encode_segment_header(self.base, self.salt, journal)], 0)
        file.sync()
        rename_file(temporary, self.path)
        file.path = self.path
        sync_directory(self.path.parent)
        self.file = file

    def reaches_beyond(self, position: int) -> bool:
        """Whether the file has bytes for positions from `position` on."""
        return self.allocated > self.at(position)

    def renew(self) -> None:
        """Replace the file by a durable copy. Blocks.

        A failed fsync may have left bytes in the page cache that count as written but are not on disk, and no
        later fsync would write them (I10). A copy is necessary because data on disk must not be overwritten
        in place.
        """
        temporary = self.path.with_suffix(".tmp")
        delete_file(temporary)
        copy = File(temporary, create=True)
        for at in range(0, self.allocated, COPY_BYTES):
            copy.write([self.opened.read(min(COPY_BYTES, self.allocated - at), at)], at)
        copy.sync()
        rename_file(temporary, self.path)
        copy.path = self.path
        sync_directory(self.path.parent)
        self.file = copy

    def reserve(self, end: int, limit: int) -> None:
        """Reserve disk space up to byte `end` of the file. Raises Shortage."""
        if end > self.allocated:
            self.allocated = reserve(self.opened, self.allocated, end, limit)

    def truncate(self, end: int) -> None:
        """Cut the file at position `end`. Blocks."""
        self.opened.truncate(self.at(end))
        self.allocated = self.at(end)

    def discard(self) -> None:
        """Close and delete the file. Blocks: giving back the blocks of a large file takes milliseconds."""
        delete_file(self.path)
        self.file = None

    @property
    def opened(self) -> File:
        assert self.file is not None, f"{self.path} was not made yet"
        return self.file

    def at(self, position: int) -> int:
        """The byte of the file for a `position` of the journal."""
        return HEADER_BYTES + position - self.base

    def position_at(self, byte: int) -> int:
        """The position of the journal for a byte of the file."""
        return byte - HEADER_BYTES + self.base

    def write(self, buffers: list[Buffer], position: int) -> None:
        """Write the bytes from `position` on. Blocks. Raises StorageFailure."""
        self.opened.write(buffers, self.at(position))


def reserve(file: File, allocated: int, end: int, limit: int) -> int:
    """Reserve space for `file` in growing steps, so that small journals stay small; return the new size."""
    step = min(max(allocated, FIRST_ALLOCATION_BYTES), MAX_ALLOCATION_STEP_BYTES)
    generous = max(end, min(allocated + step, limit + HEADER_BYTES))
    try:
        file.preallocate(generous)
    except Shortage:
        if generous == end:
            raise
        file.preallocate(end)
        return end
    return generous
