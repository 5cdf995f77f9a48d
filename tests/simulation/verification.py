"""`faircopy verify` of a run's remains: the machine's disk and its state store, copied to real files."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import NamedTuple

from faircopy.publish.files import Files
from faircopy.publish.relocate import relocate
from faircopy.storage.paths import list_directory
from faircopy.storage.state_store import Put, StateStore
from faircopy.verify.directory import DirectoryCheck
from tests.simulation.disk_nodes import DirectoryNode, Node
from tests.simulation.machine import DIRECTORY, Machine
from tests.simulation.store import Contents


def findings_of(machine: Machine) -> list[str]:
    """Everything wrong on a machine whose broker was stopped, including plain tables."""
    return findings_in(remains_of(machine))


class Remains(NamedTuple):
    """The data directory of a machine, and what is in its state store."""

    directory: Node
    contents: Contents


def remains_of(machine: Machine) -> Remains:
    """What there is, and may change."""
    node = machine.disk.find(DIRECTORY)
    assert node is not None
    return Remains(node, machine.contents)


def findings_in(remains: Remains) -> list[str]:
    """Everything wrong with these."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "data"
        copy_out(remains.directory, path)
        asyncio.run(copy_store(remains.contents, path / "state.lmdb"))
        for table in list_directory(path / "plain"):
            relocate(Files(), table)
        return [str(finding).replace(str(path), str(DIRECTORY)) for finding in DirectoryCheck(path).run()]


def copy_out(node: Node, path: Path) -> None:
    """Copy a file, or a directory with its contents."""
    if isinstance(node, DirectoryNode):
        path.mkdir()
        for name, child in node.names.items():
            copy_out(child, path / name)
        return
    with path.open("wb") as file:
        file.write(node.content)
        file.truncate(node.size)


async def copy_store(contents: Contents, path: Path) -> None:
    """Write the contents of the simulated store into a real one."""
    path.mkdir(exist_ok=True)
    store = StateStore(path, asyncio.get_running_loop())
    try:
        rows = (
            (name, key, value)
            for name, table in contents.tables.items()
            for key, value in table.values.items()
        )
        await store.write([Put(*row) for row in rows])
    finally:
        store.close()
