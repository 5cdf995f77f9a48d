"""Files and directories of a disk in memory, each with what of it is durable.

a file       is `durable`, and the writes and sizes since the last fdatasync, in order
a directory  is the names that are durable, and its changes since the last fsync, in order
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class FileNode:
    """A file. `changes`, not fsynced yet, are (position, bytes) of writes and (size, None) of new sizes."""

    content: bytearray = field(default_factory=bytearray)
    size: int = 0
    durable: bytearray = field(default_factory=bytearray)
    durable_size: int = 0
    changes: list[tuple[int, bytes | None]] = field(default_factory=list)
    modified_ns: int = 0

    def write(self, position: int, data: bytes) -> None:
        put(self.content, position, data)
        self.size = max(self.size, position + len(data))
        self.changes.append((position, data))

    def resize(self, size: int) -> None:
        del self.content[size:]
        self.size = size
        self.changes.append((size, None))

    def read(self, position: int, size: int) -> bytes:
        end = min(position + size, self.size)
        found = bytes(self.content[position:end])
        return found + bytes(max(end - max(position, len(self.content)), 0) if end > position else 0)

    def sync(self) -> None:
        for position, data in self.changes:
            if data is None:
                del self.durable[position:]
                self.durable_size = position
            else:
                put(self.durable, position, data)
                self.durable_size = max(self.durable_size, position + len(data))
        self.changes.clear()


@dataclass
class DirectoryNode:
    """A directory; `changes` are (name, node or None) in the order in which they were made, a rename as one
    of two.
    """

    names: dict[str, FileNode | DirectoryNode] = field(default_factory=dict)
    durable: dict[str, FileNode | DirectoryNode] = field(default_factory=dict)
    changes: list[dict[str, FileNode | DirectoryNode | None]] = field(default_factory=list)

    def change(self, changed: dict[str, FileNode | DirectoryNode | None]) -> None:
        apply_names(self.names, changed)
        self.changes.append(changed)

    def sync(self) -> None:
        for changed in self.changes:
            apply_names(self.durable, changed)
        self.changes.clear()


Node = FileNode | DirectoryNode


def put(content: bytearray, position: int, data: bytes) -> None:
    """Write into a file's bytes. Bytes never written are zero, and take no memory."""
    if position > len(content):
        content += bytes(position - len(content))
    content[position : position + len(data)] = data


def apply_names(names: dict[str, Node], changed: dict[str, Node | None]) -> None:
    for name, node in changed.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node
