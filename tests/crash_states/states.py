"""All states in which a crash may leave a disk, as far as they can be enumerated.

What was not fsynced consists of units: a sector of a write, a changed size, a changed name. A state keeps
some of them and loses the others. If there are few units, all subsets are tried. If there are many, those
that matter most are: all, none, all but one, one alone, each prefix (as a journaling file system keeps it),
and some at random.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator

from tests.simulation.aftermath import SECTOR_BYTES
from tests.simulation.disk_nodes import DirectoryNode, FileNode, Node, apply_names, put
from tests.simulation.lying_disk import LyingDisk

ALL_SUBSETS_UNITS_MAX = 5
RANDOM_STATES = 6

Choice = Callable[[int], bool]


class State:
    """One outcome. Units are numbered as they are found, and `keeps` chooses among them."""

    def __init__(self, keeps: Choice, sector_bytes: int) -> None:
        self._keeps = keeps
        self._sector_bytes = sector_bytes
        self._made: dict[int, Node] = {}
        self.units = 0

    def _is_kept(self) -> bool:
        self.units += 1
        return self._keeps(self.units - 1)

    def node(self, node: Node) -> Node:
        if id(node) not in self._made:
            self._made[id(node)] = (
                self.directory(node) if isinstance(node, DirectoryNode) else self._file(node)
            )
        return self._made[id(node)]

    def directory(self, node: DirectoryNode) -> DirectoryNode:
        names = dict(node.durable)
        for changed in node.changes:
            if self._is_kept():
                apply_names(names, changed)
        left = {name: self.node(child) for name, child in names.items()}
        return DirectoryNode(left, dict(left))

    def _file(self, node: FileNode) -> FileNode:
        content, size = bytearray(node.durable), node.durable_size
        for position, data in node.changes:
            if data is None:
                if self._is_kept():
                    size = position
                    del content[size:]
                continue
            for at, sector in self._sectors(position, data):
                if self._is_kept():
                    put(content, at, sector)
                    size = max(size, at + len(sector))
        return FileNode(bytearray(content), size, content, size, [], node.modified_ns)

    def _sectors(self, position: int, data: bytes) -> Iterator[tuple[int, bytes]]:
        at = 0
        while at < len(data):
            size = min(self._sector_bytes - (position + at) % self._sector_bytes, len(data) - at)
            yield position + at, data[at : at + size]
            at += size


def states_of(disk: LyingDisk, chosen: random.Random) -> Iterator[LyingDisk]:
    """The disks that a crash may make of this one."""
    for sector_bytes in SECTOR_BYTES:
        counting = State(lambda _: True, sector_bytes)
        counting.directory(disk.root)
        for kept in subsets(counting.units, chosen):
            state = State(kept.__contains__, sector_bytes)
            yield disk.with_root(state.directory(disk.root))


def subsets(units: int, chosen: random.Random) -> Iterator[frozenset[int]]:
    """For each state, which of `units` units are kept; no state comes twice."""
    if units <= ALL_SUBSETS_UNITS_MAX:
        for size in range(units + 1):
            yield from map(frozenset, itertools.combinations(range(units), size))
        return
    everything = frozenset(range(units))
    found: dict[frozenset[int], None] = dict.fromkeys((frozenset(), everything))
    for unit in range(units):
        found[everything - {unit}] = None
        found[frozenset({unit})] = None
        found[frozenset(range(unit))] = None
    for _ in range(RANDOM_STATES):
        found[frozenset(unit for unit in range(units) if chosen.random() < 0.5)] = None
    yield from found
