"""Making a table readable again after its directory was moved: its log holds absolute paths.

Only for a table that no publisher has open. A stream knows the files that it has read by their paths. If it
has read all of them before the move, set their times to 1, so that it skips them at the new place; otherwise
it reads them again there. Batch reads are not affected.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from faircopy.publish import names, spark_log
from faircopy.publish.files import Files, write_durably
from faircopy.publish.log_directory import LogDirectory, damaged
from faircopy.publish.recovery import check_live_files
from faircopy.publish.spark_log import LogFormatError


def relocate(files: Files, directory: Path) -> int:
    """Make the log of the table in `directory` (absolute) name the files there. Returns how many it changed.

    It is harmless to repeat this, and necessary after a crash. Raises TableDamagedError (also if files are
    missing at the new place), LockedError, FsyncError or OSError.
    """
    lock = files.lock(directory / names.LOCK)
    try:
        log_directory = directory / names.SPARK_LOG
        found = [name for name in files.list_directory(log_directory) if spark_log.entry_of_name(name)]
        changed = [_relocate_entry(files, log_directory / name) for name in found]
        live = LogDirectory(files, directory).load()
        check_live_files(files, directory, live)
        return sum(changed)
    finally:
        lock.close()


def _relocate_entry(files: Files, path: Path) -> bool:
    """Rewrite one entry; False if it already names the right directory."""
    directory = PurePosixPath(path.parent.parent)
    try:
        listed = list(spark_log.parse_entry(files.read(path)))
    except LogFormatError as error:
        raise damaged(path.parent.parent, f"{path} is damaged: {error}") from error
    if all(place == directory for place, _ in listed):
        return False
    write_durably(files, path, spark_log.format_entry(directory, [file for _, file in listed]))
    return True
