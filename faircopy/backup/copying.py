"""Copying one file with its checksum. Blocks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from crc32c import crc32c

from faircopy.storage.failures import StorageFailure
from faircopy.storage.file import File
from faircopy.storage.paths import delete_file, rename_file

PIECE_BYTES = 1 << 20
Advance = Callable[[int], None]


def copy_file(source: Path, target: Path, size: int, advance: Advance) -> int:
    """Copy the first `size` bytes durably, but not the name; return their CRC32C. Raises StorageFailure."""
    temporary = target.with_name(target.name + ".tmp")
    delete_file(temporary)
    copy = File(temporary, create=True)
    checksum = read_through(source, size, lambda piece, at: copy.write([piece], at), advance)
    copy.sync()
    rename_file(temporary, target)
    return checksum


def checksum_of_file(path: Path, size: int, advance: Advance) -> int:
    """The CRC32C of a file's first `size` bytes. Raises StorageFailure."""
    return read_through(path, size, lambda _piece, _at: None, advance)


def read_through(path: Path, size: int, use: Callable[[bytes, int], object], advance: Advance) -> int:
    """Pass the first `size` bytes of a file to `use(piece, position)`, and return their CRC32C."""
    file = File(path, read_only=True)
    checksum = 0
    for at in range(0, size, PIECE_BYTES):
        piece = file.read(min(PIECE_BYTES, size - at), at)
        if len(piece) < min(PIECE_BYTES, size - at):
            raise StorageFailure(f"{path} ends at byte {at + len(piece)}, but should have {size}")
        checksum = crc32c(piece, checksum)
        use(piece, at)
        advance(len(piece))
    return checksum
