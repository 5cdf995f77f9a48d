"""Telling crash states apart. Many are the same to the byte: those of two I/Os that wrote nothing in between,
and many of large and of small sectors. Recovery from one of them shows no more than from another.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace

from tests.checker.history import Operation, Result, Transaction
from tests.crash_states.stage import Moment, Survivor
from tests.simulation.disk_nodes import DirectoryNode, Node
from tests.simulation.lying_disk import LyingDisk
from tests.simulation.store import Contents


class Met:
    """The crash states of one scenario that have come up so far. A bounded sweep tries only some of them."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def new(self, crash: str, moment: Moment, left: Iterable[LyingDisk]) -> Iterator[LyingDisk]:
        """Those disks that this kind of crash at this moment leaves and none before it has left."""
        known = hash((crash, all_but_the_disk(moment)))
        for disk in left:
            found = hash((known, of_node(disk.root)))
            if found not in self._seen:
                self._seen.add(found)
                yield disk


def all_but_the_disk(moment: Moment) -> Hashable:
    """What else recovery and clients know of a moment, but for the time."""
    return (
        of_store(moment.contents),
        tuple(map(of_operation, moment.history)),
        tuple(map(of_survivor, moment.survivors)),
        repr(moment.topics),
    )


def of_node(node: Node) -> Hashable:
    """The names below a directory, or what is in a file."""
    if isinstance(node, DirectoryNode):
        return tuple((name, of_node(child)) for name, child in sorted(node.names.items()))
    return node.modified_ns, node.size, bytes(node.content[: node.size]).rstrip(b"\0")


def of_store(contents: Contents) -> Hashable:
    """The records of the state store."""
    return tuple((name, tuple(sorted(table.values.items()))) for name, table in contents.tables.items())


def of_operation(operation: Operation) -> str:
    """What a client knows. That a request is not answered yet is the same at any time."""
    if isinstance(operation, Transaction) and operation.result is Result.UNKNOWN:
        operation = replace(operation, ended=operation.begun)
    return repr(operation)


def of_survivor(survivor: Survivor) -> str:
    """What a client still has to do, whatever value it will send."""
    return repr(replace(survivor, rest=[send._replace(value=0) for send in survivor.rest]))
