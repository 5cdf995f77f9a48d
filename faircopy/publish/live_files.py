"""The files that batch reads of a table take, for readers that read neither of its logs. Read-only, at any
time.
"""

from __future__ import annotations

from pathlib import Path

from faircopy.errors import FaircopyError
from faircopy.publish import names, spark_log
from faircopy.publish.files import Files
from faircopy.publish.log_directory import damaged
from faircopy.publish.spark_log import LogFormatError, entry_name, is_compact


class NoTableError(FaircopyError):
    """There is no plain table in a directory."""


def live_files(files: Files, directory: Path) -> list[Path]:
    """The files that make up the table in `directory` (absolute), oldest first.

    Raises NoTableError, TableDamagedError, OSError.
    """
    log = directory / names.SPARK_LOG
    found = (spark_log.entry_of_name(name) for name in files.list_directory(log))
    entries = sorted(entry for entry in found if entry is not None)
    compacts = [number for number, entry in enumerate(entries) if is_compact(entry)]
    if not compacts:
        raise NoTableError(f"{directory} is not a plain table, or not one yet: {log} lists nothing")
    return [
        path
        for entry in entries[compacts[-1] :]
        for path in _listed(files, directory, log / entry_name(entry))
    ]


def _listed(files: Files, directory: Path, entry: Path) -> list[Path]:
    try:
        listed = [file for _, file in spark_log.parse_entry(files.read(entry))]
        return [directory / file.name for file in listed if not file.is_covered]
    except LogFormatError as error:
        raise damaged(directory, f"{entry} is damaged: {error}") from error
