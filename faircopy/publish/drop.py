"""Deleting a table."""

from __future__ import annotations

from pathlib import Path

from faircopy.publish import names
from faircopy.publish.files import Files, delete_tree, rename_durably
from faircopy.publish.log_directory import TableDamagedError

_OURS = {names.SPARK_LOG, names.DELTA_LOG, names.STATE, names.LOCK}


def drop_table(files: Files, directory: Path) -> None:
    """Delete the table in `directory`, and that of its dead letters, each at once for readers; nothing
    happens if it does not exist.

    The next drop of the same name deletes what a crash leaves. Raises TableDamagedError for a directory that
    holds something else, LockedError, FsyncError or OSError.
    """
    _drop(files, directory)
    _drop(files, directory.with_name(names.dead_letters(directory.name)))


def _drop(files: Files, directory: Path) -> None:
    found = files.list_directory(directory)
    if found and not _OURS.intersection(found):
        raise TableDamagedError(
            f"deleting the plain table in {directory}: no table is there, but {len(found)} other files."
            " Nothing was deleted"
        )
    doomed = directory.with_name(names.doomed(directory.name))
    delete_tree(files, doomed)
    if files.is_directory(directory):
        lock = files.lock(directory / names.LOCK)
        rename_durably(files, directory, doomed)
        delete_tree(files, doomed)
        lock.close()
