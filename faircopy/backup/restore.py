"""Checking a backup, and turning it into a data directory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from faircopy.arbiter.directory_note import NOTE_NAME
from faircopy.backup.copying import Advance, checksum_of_file, copy_file
from faircopy.backup.make import backups_in
from faircopy.backup.manifest import FILE, BadBackup, Manifest
from faircopy.storage.copied import note_copied
from faircopy.storage.data_directory import FORMAT_FILE
from faircopy.storage.failures import StorageFailure
from faircopy.storage.last_end import forget_last_end
from faircopy.storage.local_notes import LocalNotes
from faircopy.storage.paths import exists, list_directory, make_directory, size_of, sync_directory
from faircopy.storage.state_store import StateStore
from faircopy.storage.steady_note import forget_boot

PLAIN = "plain"


def find_backup(path: Path) -> Path:
    """The backup at a path: the directory itself, or the newest backup in it. Raises BadBackup."""
    found = [path] if exists(path / FILE) else backups_in(path)
    if not found:
        raise BadBackup(f"{path} holds no finished backup: give a directory that faircopy backup has written")
    return found[-1]


def flaws_of(backup: Path, manifest: Manifest, advance: Advance) -> Iterator[tuple[Path, str]]:
    """Each file of a backup that has changed since it was written, and how. Blocks."""
    for name, copied in manifest.files.items():
        path = backup / name
        try:
            if not exists(path):
                yield path, "is missing"
            elif size_of(path) != copied.size:
                yield path, f"has {size_of(path)} bytes, and had {copied.size}"
            elif checksum_of_file(path, copied.size, advance) != copied.checksum:
                yield path, "does not match its checksum"
        except StorageFailure as error:
            yield path, str(error)


def ensure_empty(directory: Path) -> None:
    """Raise BadBackup unless a data directory can be created there."""
    if list_directory(directory):
        raise BadBackup(f"{directory} is not empty: a backup is restored into a new or an empty directory")


def restore(backup: Path, manifest: Manifest, directory: Path, advance: Advance) -> None:
    """Make a data directory from a checked backup. Blocks. Raises BadBackup, StorageFailure.

    The format file comes last, so that no broker starts on an incomplete directory.
    """
    ensure_empty(directory)
    for name in sorted(manifest.files, key=lambda name: name == FORMAT_FILE):
        if name == FORMAT_FILE:
            asyncio.run(part_from_the_original(directory / "state.lmdb"))
            for part in ("journal", "log", PLAIN):
                make_directory(directory / part)
        target = directory / name
        make_directory(target.parent)
        if (
            copy_file(backup / name, target, manifest.files[name].size, advance)
            != manifest.files[name].checksum
        ):
            raise BadBackup(
                f"{backup / name} does not match its checksum. {directory} is not finished: delete it"
            )
        sync_directory(target.parent)


async def part_from_the_original(state: Path) -> None:
    """Make the restored broker use no number again that the original one has used since the backup, not count
    the time since then, and abort what was open: the original may have acknowledged more of it.
    """
    store = StateStore(state, asyncio.get_running_loop())
    try:
        notes = LocalNotes(store)
        await note_copied(notes, NOTE_NAME)  # the set's own directory is another one
        await forget_boot(notes)
        await forget_last_end(notes)
    finally:
        store.close()
