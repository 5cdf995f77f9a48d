"""Making a backup from a broker's snapshot.

    DIR/2026-11-22T104200Z/   a complete backup, laid out like a data directory, and its manifest
    DIR/unfinished/             an interrupted backup, which the next one continues
        done.jsonl              a line for each file that is in it, [path, bytes, modified, CRC32C]

A file that has not changed since the last backup is a hard link to the file there. Other files that will
never change again are hard links to the broker's own, if the file system is the same; the rest are copies.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from faircopy.backup.copying import Advance, checksum_of_file, copy_file
from faircopy.backup.manifest import FILE, BadBackup, CopiedFile, Manifest, decode_manifest, encode_manifest
from faircopy.storage.failures import StorageFailure
from faircopy.storage.paths import (
    delete_file,
    exists,
    is_directory,
    link_file,
    list_directory,
    make_directory,
    read_file,
    rename_file,
    size_of,
    sync_directory,
    write_file,
)
from faircopy.storage.system import mounted

UNFINISHED = "unfinished"
DONE = "done.jsonl"


class Wanted(NamedTuple):
    """A file of the snapshot: its first `size` bytes belong to the backup."""

    path: str
    size: int
    is_sealed: bool


class Outcome(NamedTuple):
    """A finished backup; how many bytes were copied, linked, and taken from an earlier backup."""

    path: Path
    files: int
    copied_bytes: int
    linked_bytes: int
    kept_bytes: int


def backups_in(directory: Path) -> list[Path]:
    """The finished backups in a directory, the oldest first."""
    return [child for child in list_directory(directory) if child.name != UNFINISHED and exists(child / FILE)]


def read_manifest(backup: Path) -> Manifest:
    """The manifest of a finished backup. Raises BadBackup, StorageFailure."""
    try:
        return decode_manifest(read_file(backup / FILE))
    except BadBackup as error:
        raise BadBackup(f"{backup} is not a sound backup: {error}") from error


class Backup:
    """One run of a backup of `snapshot` into `directory`."""

    def __init__(self, snapshot: Path, directory: Path, cluster: str, advance: Advance) -> None:
        self._snapshot = snapshot
        self._directory = directory
        self._cluster = cluster
        self._advance = advance
        self._unfinished = directory / UNFINISHED
        self._done: dict[str, CopiedFile] = {}
        self._bytes = {"copied": 0, "linked": 0, "kept": 0}

    def run(self, wanted: list[Wanted], made: str) -> Outcome:
        """Copy the wanted files, and finish the backup as `made`. Raises BadBackup, StorageFailure."""
        last = self._last()
        earlier = read_manifest(last).files if last is not None else {}
        make_directory(self._unfinished)
        begun = dict(self._begun())
        self._remove_others({each.path for each in wanted})
        with (self._unfinished / DONE).open("a") as done:
            for each in wanted:
                copied = self._take(each, begun.get(each.path), earlier.get(each.path), last)
                self._done[each.path] = copied
                done.write(json.dumps([each.path, *copied]) + "\n")
                done.flush()
        return self._finish(made)

    def _last(self) -> Path | None:
        """The newest backup here, which must be of the same cluster."""
        found = backups_in(self._directory)
        if not found:
            return None
        if read_manifest(found[-1]).cluster != self._cluster:
            raise BadBackup(f"{found[-1]} is a backup of another broker: choose another directory")
        return found[-1]

    def _begun(self) -> Iterator[tuple[str, CopiedFile]]:
        """The files that an interrupted backup has copied."""
        path = self._unfinished / DONE
        # The text after the last newline was being written.
        lines = read_file(path).rpartition(b"\n")[0].splitlines() if exists(path) else []
        for line in lines:
            name, *copied = json.loads(line)
            if exists(self._unfinished / name) and size_of(self._unfinished / name) == copied[0]:
                yield name, CopiedFile(*copied)

    def _remove_others(self, wanted: set[str]) -> None:
        """Remove files of an interrupted backup that this one does not have."""
        for path in all_files(self._unfinished):
            name = str(path.relative_to(self._unfinished))
            if name not in wanted and name != DONE:
                delete_file(path)

    def _take(
        self, wanted: Wanted, begun: CopiedFile | None, earlier: CopiedFile | None, last: Path | None
    ) -> CopiedFile:
        source, target = self._snapshot / wanted.path, self._unfinished / wanted.path
        status = mounted().status(source)
        if status is None:
            raise StorageFailure(
                f"{source} is gone: the broker has removed the snapshot. Start the backup again"
            )
        now = (wanted.size, status.modified_ns)
        if begun is not None and begun[:2] == now:
            return self._count("kept", begun)
        delete_file(target)
        make_directory(target.parent, durable=False)
        if last is not None and earlier is not None and earlier[:2] == now:
            link_file(last / wanted.path, target)
            return self._count("kept", earlier)
        if wanted.is_sealed and status.size == wanted.size and try_link(source, target):
            return self._count(
                "linked", CopiedFile(*now, checksum_of_file(target, wanted.size, self._advance))
            )
        return self._count("copied", CopiedFile(*now, copy_file(source, target, wanted.size, self._advance)))

    def _count(self, how: str, copied: CopiedFile) -> CopiedFile:
        self._bytes[how] += copied.size
        if how == "kept":
            self._advance(copied.size)
        return copied

    def _finish(self, made: str) -> Outcome:
        for directory in all_directories(self._unfinished):
            sync_directory(directory)
        write_file(self._unfinished / FILE, encode_manifest(Manifest(self._cluster, made, self._done)))
        delete_file(self._unfinished / DONE)
        final = self._free_path(made)
        rename_file(self._unfinished, final)
        sync_directory(self._directory)
        return Outcome(
            final, len(self._done), self._bytes["copied"], self._bytes["linked"], self._bytes["kept"]
        )

    def _free_path(self, made: str) -> Path:
        """Where to put what was made at this second: other backups of the same one stay."""
        names = (made if number == 1 else f"{made}-{number}" for number in itertools.count(1))
        return next(path for path in map(self._directory.joinpath, names) if not exists(path))


def try_link(source: Path, target: Path) -> bool:
    """Give a file a second name; false if that fails, as it does between file systems."""
    try:
        link_file(source, target)
    except StorageFailure:
        return False
    return True


def all_directories(directory: Path) -> Iterator[Path]:
    """A directory, and those in it and below."""
    yield directory
    for child in list_directory(directory):
        if is_directory(child):
            yield from all_directories(child)


def all_files(directory: Path) -> Iterator[Path]:
    """The files in a directory, and below."""
    for child in list_directory(directory):
        if is_directory(child):
            yield from all_files(child)
        else:
            yield child
