"""Files in memory, for targets whose product reads files.

Nothing waits for a disk, and each input finds the files fresh.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.fuzz.choices import Choices
from tests.simulation.disk_nodes import DirectoryNode, FileNode
from tests.simulation.lying_disk import LyingDisk

READ_BEYOND_BYTES_MAX = 4 << 20
EDITS_MAX = 16
NOW_NS = 1_790_000_000_000_000_000


class GreedyRead(AssertionError):
    """More bytes were asked for than the file can have: the call takes the memory for all of them."""


class MemoryDisk(LyingDisk):
    """A disk with these files on it, on which nobody may ask for far more than a file has.

    `pread` allocates all that it is asked for.
    """

    def __init__(self, files: Mapping[Path, bytes] | None = None) -> None:
        super().__init__(lambda: NOW_NS)
        for path, content in (files or {}).items():
            self.put(path, content)

    def with_root(self, root: DirectoryNode) -> MemoryDisk:
        disk = MemoryDisk()
        disk.root = root
        return disk

    def put(self, path: Path, content: bytes) -> None:
        """Have a file there, and the directories above it."""
        directory = self.root
        for part in path.parts[1:-1]:
            found = directory.names.setdefault(part, DirectoryNode())
            assert isinstance(found, DirectoryNode)
            directory = found
        directory.names[path.name] = FileNode(bytearray(content), len(content), modified_ns=NOW_NS)

    def content(self, path: Path) -> bytes | None:
        """A whole file, or None."""
        node = self.find(path)
        return node.read(0, node.size) if isinstance(node, FileNode) else None

    def read(self, descriptor: int, size: int, position: int) -> bytes:
        path, node = self._file(descriptor)
        if size > max(node.size, 0) + READ_BEYOND_BYTES_MAX:
            raise GreedyRead(f"{size} bytes of {path}, which has {node.size}")
        return super().read(descriptor, size, position)


def edited(content: bytes, choices: Choices) -> bytes:
    """The content with some edits, as a disk, a person or a bug may make them."""
    changed = bytearray(content)
    for _ in range(EDITS_MAX):
        if choices.is_over:
            break
        edit(changed, choices)
    return bytes(changed)


def edit(content: bytearray, choices: Choices) -> None:
    """One edit at a place that may be anywhere."""
    kind = choices.number() % 6
    at = choices.up_to(len(content))
    if kind == 0:
        content[at : at + 1] = bytes(byte ^ choices.number() for byte in content[at : at + 1])
    elif kind == 1:
        new = choices.take(choices.number())
        content[at : at + len(new)] = new
    elif kind == 2:
        del content[at:]
    elif kind == 3:
        del content[at : at + choices.number(2)]
    elif kind == 4:
        content[at:at] = choices.take(choices.number())
    else:
        begin = choices.up_to(len(content))
        copied = content[begin : begin + choices.number(2)]
        content[at : at + len(copied)] = copied


def changed_files(
    sound: Mapping[Path, bytes], new_names: Sequence[str], choices: Choices
) -> dict[Path, bytes]:
    """Sound files, some of which are gone or edited, and perhaps others of these names beside them."""
    files = dict(sound)
    while not choices.is_over:
        path = choices.one_of(sorted(sound))
        kind = choices.number() % 8
        if kind == 0:
            files.pop(path, None)
        elif kind == 1:
            files[path.with_name(choices.one_of(new_names))] = choices.some()
        elif path in files:
            files[path] = edited(files[path], choices)
    return files
