"""A disk in memory that can crash between any two operations, and keep or lose what was not synced."""

from __future__ import annotations

import copy
import io
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from faircopy.publish.files import Files, FsyncError, NewFile

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, SupportsLenAndGetItem

Choice = TypeVar("Choice")


class FileNode:
    def __init__(self) -> None:
        self.content = b""
        self.durable = b""

    def after_crash(self, keep: Callable[[], bool], rng: random.Random) -> FileNode:
        node = FileNode()
        node.content = self.durable
        if self.content != self.durable and keep():
            node.content = self.content[: rng.choice([len(self.content), rng.randint(0, len(self.content))])]
        node.durable = node.content
        return node


class DirectoryNode:
    def __init__(self) -> None:
        self.names: dict[str, Node] = {}
        self.durable: dict[str, Node] = {}

    def after_crash(self, keep: Callable[[], bool], rng: random.Random) -> DirectoryNode:
        """Each name that was changed since the last sync is there as before or as after, by `keep`."""
        node = DirectoryNode()
        for name in sorted(self.names.keys() | self.durable.keys()):
            before, after = self.durable.get(name), self.names.get(name)
            survivor = after if before is after or keep() else before
            if survivor is not None:
                node.names[name] = survivor.after_crash(keep, rng)
        node.durable = dict(node.names)
        return node


Node = FileNode | DirectoryNode


class SimulatedFiles(Files):
    """`before_operation` is called with the name of each operation that changes something; it may raise."""

    def __init__(self, root: DirectoryNode | None = None) -> None:
        self.root = root or DirectoryNode()
        self.before_operation: Callable[[str], None] = lambda operation: None
        self.locked: set[Path] = set()

    def snapshot(self) -> DirectoryNode:
        return copy.deepcopy(self.root)

    def find(self, path: Path) -> Node:
        node: Node = self.root
        for part in path.parts[1:]:
            if not isinstance(node, DirectoryNode) or part not in node.names:
                raise FileNotFoundError(2, "no such file", str(path))
            node = node.names[part]
        return node

    def directory(self, path: Path) -> DirectoryNode:
        node = self.find(path)
        if not isinstance(node, DirectoryNode):
            raise NotADirectoryError(20, "not a directory", str(path))
        return node

    def file(self, path: Path) -> FileNode:
        node = self.find(path)
        if not isinstance(node, FileNode):
            raise IsADirectoryError(21, "is a directory", str(path))
        return node

    def walk(self, path: Path) -> Iterator[Path]:
        for name, node in self.directory(path).names.items():
            yield path / name
            if isinstance(node, DirectoryNode):
                yield from self.walk(path / name)

    def list_directory(self, directory: Path) -> dict[str, int]:
        try:
            names = self.directory(directory).names
        except FileNotFoundError:
            return {}
        return {n: len(node.content) if isinstance(node, FileNode) else 0 for n, node in names.items()}

    def is_directory(self, path: Path) -> bool:
        try:
            return isinstance(self.find(path), DirectoryNode)
        except FileNotFoundError:
            return False

    def read(self, path: Path, position: int = 0, size: int = -1) -> bytes:
        content = self.file(path).content
        return content[position:] if size < 0 else content[position : position + size]

    def open_to_read(self, path: Path) -> BinaryIO:
        return io.BytesIO(self.file(path).content)

    def create(self, path: Path) -> NewFile:
        self.before_operation("create")
        node = FileNode()
        self.directory(path.parent).names[path.name] = node
        return SimulatedNewFile(self, node)

    def rename(self, old: Path, new: Path) -> None:
        self.before_operation("rename")
        node = self.find(old)
        target = self.directory(new.parent)
        del self.directory(old.parent).names[old.name]
        target.names[new.name] = node

    def delete(self, path: Path) -> None:
        self.before_operation("delete")
        self.directory(path.parent).names.pop(path.name, None)

    def make_directory(self, path: Path) -> None:
        self.before_operation("make_directory")
        assert path.name not in self.directory(path.parent).names
        self.directory(path.parent).names[path.name] = DirectoryNode()

    def remove_directory(self, path: Path) -> None:
        self.before_operation("remove_directory")
        assert not self.directory(path).names
        del self.directory(path.parent).names[path.name]

    def sync_directory(self, path: Path) -> None:
        self.before_operation("sync")
        node = self.directory(path)
        node.durable = dict(node.names)

    def lock(self, path: Path) -> SimulatedLock:  # type: ignore[override]  # it has what is used of a lock
        self.directory(path.parent).names.setdefault(path.name, FileNode())
        assert path not in self.locked
        self.locked.add(path)
        return SimulatedLock(self, path)


class SimulatedLock:
    def __init__(self, files: SimulatedFiles, path: Path) -> None:
        self._files, self._path = files, path

    def close(self) -> None:
        self._files.locked.discard(self._path)


class SimulatedNewFile(NewFile):
    def __init__(self, files: SimulatedFiles, node: FileNode) -> None:
        self._files, self._node = files, node
        self.size = 0

    def write(self, data: ReadableBuffer) -> int:
        self._files.before_operation("write")
        self._node.content += bytes(data)
        self.size += len(bytes(data))
        return len(bytes(data))

    def sync(self) -> None:
        self._files.before_operation("sync")
        self._node.durable = self._node.content

    def close(self) -> None:
        io.RawIOBase.close(self)


class TheFirst(random.Random):
    """Chooses nothing by chance."""

    def choice(self, seq: SupportsLenAndGetItem[Choice]) -> Choice:
        return seq[0]


def crashed(root: DirectoryNode, mode: str, seed: int) -> SimulatedFiles:
    """The disk after a crash; mode "lost" keeps nothing that was not synced, "kept" all, "mixed" some."""
    rng = random.Random(seed)
    keeps: dict[str, Callable[[], bool]] = {
        "lost": lambda: False,
        "kept": lambda: True,
        "mixed": lambda: rng.random() < 0.5,
    }
    return SimulatedFiles(root.after_crash(keeps[mode], rng if mode == "mixed" else TheFirst(0)))


def failing_sync(operation: str) -> None:
    if operation == "sync":
        raise FsyncError("fsync: simulated")
