"""The disks of all machines of a world, behind one system: each call reaches the disk of its machine.

A path is one of the machine that the caller runs on (`here.py`), so machines may have the same paths. An open
file stays on the disk that opened it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from faircopy.storage.system import Buffer, Space, Status, System
from tests.simulation.here import here
from tests.simulation.lying_disk import LyingDisk


class RoutedSystem(System):
    """Calls with a path raise LookupError outside of all machines."""

    def __init__(self) -> None:
        self._disks: dict[int, LyingDisk] = {}  # by open descriptors, which no two disks share

    # -- by path ---------------------------------------------------------------------------------------------

    def open(self, path: Path, flags: int) -> int:
        disk = here().disk
        return self._opened(disk, disk.open(path, flags))

    def lock(self, path: Path) -> int:
        disk = here().disk
        return self._opened(disk, disk.lock(path))

    def lock_shared(self, path: Path) -> int:
        disk = here().disk
        return self._opened(disk, disk.lock_shared(path))

    def _opened(self, disk: LyingDisk, descriptor: int) -> int:
        self._disks[descriptor] = disk
        return descriptor

    def sync_directory(self, path: Path) -> None:
        here().disk.sync_directory(path)

    def make_directory(self, path: Path) -> None:
        here().disk.make_directory(path)

    def permissions(self, path: Path) -> int:
        return here().disk.permissions(path)

    def remove_directory(self, path: Path) -> None:
        here().disk.remove_directory(path)

    def rename(self, old: Path, new: Path) -> None:
        here().disk.rename(old, new)

    def link(self, old: Path, new: Path) -> None:
        here().disk.link(old, new)

    def delete(self, path: Path) -> None:
        here().disk.delete(path)

    def list(self, path: Path) -> list[str]:
        return here().disk.list(path)

    def status(self, path: Path) -> Status | None:
        return here().disk.status(path)

    def space(self, path: Path) -> Space:
        return here().disk.space(path)

    # -- by descriptor ---------------------------------------------------------------------------------------

    def close(self, descriptor: int) -> None:
        self._disks.pop(descriptor).close(descriptor)

    def size(self, descriptor: int) -> int:
        return self._disks[descriptor].size(descriptor)

    def write(self, descriptor: int, buffers: Sequence[Buffer], position: int) -> int:
        return self._disks[descriptor].write(descriptor, buffers, position)

    def read(self, descriptor: int, size: int, position: int) -> bytes:
        return self._disks[descriptor].read(descriptor, size, position)

    def read_cached(self, descriptor: int, buffer: bytearray, position: int) -> int:
        return self._disks[descriptor].read_cached(descriptor, buffer, position)

    def allocate(self, descriptor: int, end: int) -> None:
        self._disks[descriptor].allocate(descriptor, end)

    def truncate(self, descriptor: int, size: int) -> None:
        self._disks[descriptor].truncate(descriptor, size)

    def sync(self, descriptor: int) -> None:
        self._disks[descriptor].sync(descriptor)
