"""A disk that keeps what was fsynced, and an arbitrary part of the rest.

`LyingDisk` takes the calls of `storage.system.System`. `crash` returns the disk that the machine finds when
it comes back.

After a failed fsync, written data stays readable until the machine loses power, but never becomes durable
(Rebello et al., "Can Applications Recover from fsync Failures?", 2020).
"""

from __future__ import annotations

import errno
import itertools
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from faircopy.storage.system import PRIVATE_DIRECTORY, Buffer, Space, Status, System
from tests.simulation.aftermath import Aftermath, Fate
from tests.simulation.disk_nodes import DirectoryNode, FileNode, Node

SIZE_BYTES = 1 << 40
WITHIN_A_WRITE = "write on"


class Operation(NamedTuple):
    """One call that the disk is asked to do; `number` counts them from 1."""

    number: int
    name: str
    path: Path


class Crash(BaseException):
    """The machine stops in the middle of a call. Nothing after that reaches the disk."""


_DESCRIPTORS = itertools.count(1 << 30)
"""Never the same twice in a process: what is left of a dead broker may close a file in the next world."""


class LyingDisk(System):
    """The disk of one machine. `before`, which may raise, is called before each change."""

    def __init__(self, now_ns: Callable[[], int], root: DirectoryNode | None = None) -> None:
        self.root = root or DirectoryNode()
        self.before: Callable[[Operation], None] = lambda operation: None
        self.operations = 0
        self.free_bytes: int | None = None  # None: unlimited
        self._now_ns = now_ns
        self._open: dict[int, tuple[Path, FileNode]] = {}
        self._locks: dict[int, bool] = {}  # of descriptors: whether it is exclusive

    def operation(self, name: str, path: Path) -> None:
        """Count an operation that changes something, and let `before` make it fail."""
        self.operations += 1
        self.before(Operation(self.operations, name, path))

    # -- finding ---------------------------------------------------------------------------------------------

    def find(self, path: Path) -> Node | None:
        node: Node | None = self.root
        for part in path.parts[1:]:
            if not isinstance(node, DirectoryNode):
                return None
            node = node.names.get(part)
        return node

    def _directory(self, path: Path) -> DirectoryNode:
        node = self.find(path)
        if not isinstance(node, DirectoryNode):
            raise FileNotFoundError(errno.ENOENT, "no such directory", str(path))
        return node

    def _file(self, descriptor: int) -> tuple[Path, FileNode]:
        return self._open[descriptor]

    # -- the calls -------------------------------------------------------------------------------------------

    def open(self, path: Path, flags: int) -> int:
        node = self.find(path)
        if flags & os.O_CREAT:
            if node is not None:
                raise FileExistsError(errno.EEXIST, "it is there", str(path))
            self.operation("create", path)
            node = FileNode(modified_ns=self._now_ns())
            self._directory(path.parent).change({path.name: node})
        if not isinstance(node, FileNode):
            raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
        descriptor = next(_DESCRIPTORS)
        self._open[descriptor] = path, node
        return descriptor

    def close(self, descriptor: int) -> None:
        self._open.pop(descriptor, None)
        self._locks.pop(descriptor, None)

    def size(self, descriptor: int) -> int:
        return self._file(descriptor)[1].size

    def write(self, descriptor: int, buffers: Sequence[Buffer], position: int) -> int:
        path, node = self._file(descriptor)
        size = sum(map(len, buffers))
        self.operation("write", path)
        self._take_space(max(position + size - node.size, 0))
        # Each buffer by itself: a crash may come between any two entries, or between a header and its
        # payload.
        for number, buffer in enumerate(buffers):
            if number:
                self.operation(WITHIN_A_WRITE, path)
            node.write(position, bytes(buffer))
            position += len(buffer)
        node.modified_ns = self._now_ns()
        return size

    def read(self, descriptor: int, size: int, position: int) -> bytes:
        return self._file(descriptor)[1].read(position, size)

    def read_cached(self, descriptor: int, buffer: bytearray, position: int) -> int:
        found = self.read(descriptor, len(buffer), position)
        buffer[: len(found)] = found
        return len(found)

    def allocate(self, descriptor: int, end: int) -> None:
        path, node = self._file(descriptor)
        if end > node.size:
            self.operation("allocate", path)
            self._take_space(end - node.size)
            node.resize(end)

    def _take_space(self, size: int) -> None:
        if self.free_bytes is not None:
            if size > self.free_bytes:
                raise OSError(errno.ENOSPC, "no space is left")
            self.free_bytes -= size

    def _give_space(self, size: int) -> None:
        if self.free_bytes is not None:
            self.free_bytes += size

    def truncate(self, descriptor: int, size: int) -> None:
        path, node = self._file(descriptor)
        self.operation("truncate", path)
        self._give_space(node.size - size)
        node.resize(size)

    def sync(self, descriptor: int) -> None:
        path, node = self._file(descriptor)
        self._sync("sync", path, node)

    def _sync(self, name: str, path: Path, node: Node) -> None:
        """Make a node durable. If that fails, written pages stay in the cache as if they were on disk, so
        that a second try finds nothing to do. Names and sizes are kept by the file system's own journal,
        which does not forget.
        """
        try:
            self.operation(name, path)
        except OSError:
            if isinstance(node, FileNode):
                node.changes = [change for change in node.changes if change[1] is None]
            raise
        node.sync()

    def sync_directory(self, path: Path) -> None:
        self._sync("sync directory", path, self._directory(path))

    def make_directory(self, path: Path) -> None:
        directory = self._directory(path.parent)
        if path.name in directory.names:
            raise FileExistsError(errno.EEXIST, "it is there", str(path))
        self.operation("make directory", path)
        directory.change({path.name: DirectoryNode()})

    def permissions(self, path: Path) -> int:
        return PRIVATE_DIRECTORY

    def remove_directory(self, path: Path) -> None:
        if self._directory(path).names:
            raise OSError(errno.ENOTEMPTY, "not empty", str(path))
        self.operation("remove directory", path)
        self._directory(path.parent).change({path.name: None})

    def rename(self, old: Path, new: Path) -> None:
        if old.parent != new.parent:
            raise NotImplementedError("faircopy renames within a directory only")
        directory = self._directory(old.parent)
        if old.name not in directory.names:
            raise FileNotFoundError(errno.ENOENT, "no such file", str(old))
        self.operation("rename", old)
        directory.change({old.name: None, new.name: directory.names[old.name]})

    def link(self, old: Path, new: Path) -> None:
        node, directory = self.find(old), self._directory(new.parent)
        if not isinstance(node, FileNode):
            raise FileNotFoundError(errno.ENOENT, "no such file", str(old))
        if new.name in directory.names:
            raise FileExistsError(errno.EEXIST, "it is there", str(new))
        self.operation("link", new)
        directory.change({new.name: node})

    def delete(self, path: Path) -> None:
        directory = self._directory(path.parent)
        if path.name not in directory.names:
            raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
        self.operation("delete", path)
        node = directory.names[path.name]
        self._give_space(node.size if isinstance(node, FileNode) else 0)
        directory.change({path.name: None})

    def list(self, path: Path) -> list[str]:
        return list(self._directory(path).names)

    def status(self, path: Path) -> Status | None:
        node = self.find(path)
        if node is None:
            return None
        if isinstance(node, DirectoryNode):
            return Status(True, 0, 0)
        return Status(False, node.size, node.modified_ns)

    def space(self, path: Path) -> Space:
        return Space(SIZE_BYTES, SIZE_BYTES if self.free_bytes is None else self.free_bytes)

    def lock(self, path: Path) -> int:
        return self._lock(path, os.O_CREAT if self.find(path) is None else 0, is_exclusive=True)

    def lock_shared(self, path: Path) -> int:
        return self._lock(path, 0, is_exclusive=False)

    def _lock(self, path: Path, flags: int, *, is_exclusive: bool) -> int:
        descriptor = self.open(path, flags)
        node = self._file(descriptor)[1]
        for other, others_is_exclusive in self._locks.items():
            if self._file(other)[1] is node and (is_exclusive or others_is_exclusive):
                self.close(descriptor)
                raise BlockingIOError(errno.EAGAIN, "it is locked", str(path))
        self._locks[descriptor] = is_exclusive
        return descriptor

    # -- crashing --------------------------------------------------------------------------------------------

    def crash(self, fate: Fate, chosen: random.Random) -> LyingDisk:
        """The disk as the machine finds it after a crash."""
        after = Aftermath(fate, chosen)
        return LyingDisk(self._now_ns, after.directory(self.root))

    def kill(self) -> LyingDisk:
        """The disk after the process was killed: the operating system survives, with everything written."""
        return self.with_root(self.root)

    def with_root(self, root: DirectoryNode) -> LyingDisk:
        """A disk of the same machine with other files."""
        return LyingDisk(self._now_ns, root)

    def sync_everything(self, under: Path = Path("/")) -> None:
        """Make everything under a directory durable, and the directory itself."""
        waiting: list[Node] = [self._directory(under)]
        while waiting:
            node = waiting.pop()
            node.sync()
            if isinstance(node, DirectoryNode):
                waiting += node.names.values()
