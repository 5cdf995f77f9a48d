"""Opening a table: create it, or recover it from a crash."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import pyarrow as pa

from faircopy.publish import names, spark_log
from faircopy.publish.checksum import is_sound
from faircopy.publish.data_file import write_data_file
from faircopy.publish.files import Files, delete_tree
from faircopy.publish.log_directory import LogDirectory, damaged
from faircopy.publish.merge import read_footer
from faircopy.publish.offsets import NOTHING_HELD, Held
from faircopy.publish.retired import RetiredFiles
from faircopy.publish.schema import SCHEMA, FooterError
from faircopy.publish.spark_log import DataFile
from faircopy.publish.table_columns import schema_in


class FoundTable(NamedTuple):
    """What a table holds, its live files, oldest first, and its columns."""

    held: Held
    live: list[DataFile]
    schema: pa.Schema


def recover(
    files: Files, directory: Path, log: LogDirectory, retired: RetiredFiles, now_ms: int
) -> FoundTable:
    """Load the table in `directory` into `log` and `retired`, or create it.

    Raises TableDamagedError, OtherFormatError, FsyncError or OSError.
    """
    retired.load()
    if not log.exists():
        _make(files, directory, log, retired, now_ms)
    live = log.load()
    _sweep(files, directory, check_live_files(files, directory, live), log, retired, now_ms)
    described = next((file for file in live if names.is_schema(file.name)), log.newest)
    held = _read(files, directory, log.newest, read_footer).held
    return FoundTable(held, live, _read(files, directory, described, schema_in))


_T = TypeVar("_T")


def _read(files: Files, directory: Path, file: DataFile, read: Callable[[Files, Path], _T]) -> _T:
    """Read something from a data file. Raises TableDamagedError."""
    # Damaged Parquet must not be read: it can make pyarrow end the process.
    if not is_sound(files, directory, file):
        raise damaged(directory, f"{file.name} is damaged: it does not match the checksum in its name")
    try:
        return read(files, directory / file.name)
    except (pa.ArrowException, FooterError) as error:
        raise damaged(directory, f"{file.name} is damaged ({error})") from error


def _make(files: Files, directory: Path, log: LogDirectory, retired: RetiredFiles, now_ms: int) -> None:
    """Create an empty table. Until its log exists, nothing else in the directory has any value."""
    name = names.schema(spark_log.FIRST_ENTRY)
    found = files.list_directory(directory)
    own = name.removesuffix("parquet")
    strange = [other for other in found if names.sequence_of(other) is not None and not other.startswith(own)]
    if strange:
        raise damaged(directory, f"it has {len(strange)} data files and no {names.SPARK_LOG}")
    retired.save()
    log.make(write_data_file(files, directory / name, now_ms, SCHEMA, lambda writer: NOTHING_HELD).file)


def _sweep(
    files: Files, directory: Path, others: list[str], log: LogDirectory, retired: RetiredFiles, now_ms: int
) -> None:
    """Of other files than live ones, delete those that were never published, and retire the rest."""
    for name in others:
        sequence = names.sequence_of(name)
        if names.is_temporary(name):
            _delete_temporary(files, directory / name)
        elif sequence is not None and sequence >= log.next_entry:
            files.delete(directory / name)
        elif sequence is not None:
            retired.add([name], now_ms)


def check_live_files(files: Files, directory: Path, live: Sequence[DataFile]) -> list[str]:
    """Check that the live files exist and have the right sizes, as far as they are listed; return the other
    names in the directory.

    Raises TableDamagedError.
    """
    found = files.list_directory(directory)
    for file in live:
        size = found.pop(file.name, None)
        if size is None or (size != file.size and not file.is_covered):
            has = "is missing" if size is None else f"has {size} bytes, not {file.size}"
            raise damaged(directory, f"{file.name} {has}")
    return list(found)


def _delete_temporary(files: Files, path: Path) -> None:
    if files.is_directory(path):
        delete_tree(files, path)
    else:
        files.delete(path)
