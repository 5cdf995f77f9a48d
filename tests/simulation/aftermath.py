"""What a crash leaves of a disk.

Each sector of a write that was not fsynced is kept, lost or garbled. Of the sizes, and of the names in
directories, that were not fsynced, some are kept. One promise always holds, as in POSIX: a rename is never
half done.
"""

from __future__ import annotations

import random
from enum import Enum

from tests.simulation.disk_nodes import DirectoryNode, FileNode, Node, apply_names, put

SECTOR_BYTES = (512, 4096)


class Fate(Enum):
    """What happens to data that was not fsynced."""

    KEPT = "kept"
    LOST = "lost"
    MIXED = "mixed"
    GARBLED = "garbled"


class Aftermath:
    """One crash: what is left of each file and directory. A file of two names, as in a half-kept rename,
    stays one.
    """

    def __init__(self, fate: Fate, chosen: random.Random) -> None:
        self._fate = fate
        self._chosen = chosen
        self._sector_bytes = chosen.choice(SECTOR_BYTES)
        self._made: dict[int, Node] = {}

    def node(self, node: Node) -> Node:
        if id(node) not in self._made:
            self._made[id(node)] = (
                self.directory(node) if isinstance(node, DirectoryNode) else self.file(node)
            )
        return self._made[id(node)]

    def directory(self, node: DirectoryNode) -> DirectoryNode:
        names = dict(node.durable)
        for changed in self._kept_changes(node):
            apply_names(names, changed)
        left = {name: self.node(child) for name, child in names.items()}
        return DirectoryNode(left, dict(left))

    def _kept_changes(self, node: DirectoryNode) -> list[dict[str, Node | None]]:
        if self._fate is Fate.KEPT:
            return node.changes
        if self._fate is Fate.LOST:
            return []
        if self._chosen.random() < 0.5:  # like a journaling file system: in order, up to some point
            return node.changes[: self._chosen.randint(0, len(node.changes))]
        return [changed for changed in node.changes if self._chosen.random() < 0.5]

    def file(self, node: FileNode) -> FileNode:
        content, size = bytearray(node.durable), node.durable_size
        for position, data in self._kept_writes(node):
            if data is None:
                size = position
                del content[size:]
            else:
                put(content, position, data)
                size = max(size, position + len(data))
        return FileNode(bytearray(content), size, content, size, [], node.modified_ns)

    def _kept_writes(self, node: FileNode) -> list[tuple[int, bytes | None]]:
        if self._fate is Fate.KEPT:
            return node.changes
        if self._fate is Fate.LOST:
            return []
        kept: list[tuple[int, bytes | None]] = []
        for position, data in node.changes:
            if data is None:
                if self._chosen.random() < 0.5:
                    kept.append((position, None))
                continue
            kept += self._sectors(position, data)
        return kept

    def _sectors(self, position: int, data: bytes) -> list[tuple[int, bytes | None]]:
        """Each sector of a write by itself: kept, lost, or, as the fate may be, full of something else."""
        found: list[tuple[int, bytes | None]] = []
        at = 0
        while at < len(data):
            size = min(self._sector_bytes - (position + at) % self._sector_bytes, len(data) - at)
            draw = self._chosen.random()
            if draw < 0.5:
                found.append((position + at, data[at : at + size]))
            elif self._fate is Fate.GARBLED and draw < 0.6:
                found.append((position + at, self._chosen.randbytes(size)))
            at += size
        return found
