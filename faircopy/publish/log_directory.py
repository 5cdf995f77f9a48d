"""The `_spark_metadata` directory of one table: its entries on disk, and the live files that they list."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from faircopy.errors import FaircopyError
from faircopy.publish import names, spark_log
from faircopy.publish.files import Files, delete_tree, rename_durably, write_durably
from faircopy.publish.spark_log import DataFile, LogFormatError, entry_name, is_compact


class TableDamagedError(FaircopyError):
    """The directory does not hold a table as faircopy left it, and needs attention; nothing was changed."""


class TableMovedError(TableDamagedError):
    """The log of a table names files of another directory."""


def damaged(directory: Path, why: str) -> TableDamagedError:
    """The error for a table whose log can't be read, which says what to do."""
    return TableDamagedError(
        f"opening the plain table in {directory}: {why}. Restore the directory from a copy, or delete it and "
        "let the table be made again from the log"
    )


class LogDirectory:
    """The log of the table in `directory`. `live` are its files, oldest first."""

    def __init__(self, files: Files, directory: Path) -> None:
        self._files = files
        self._table = directory
        self._directory = directory / names.SPARK_LOG
        self._entries: list[int] = []
        self.live: list[DataFile] = []

    @property
    def next_entry(self) -> int:
        """The id of the entry that is written next."""
        return self._entries[-1] + 1

    @property
    def next_compact(self) -> int:
        """The id of the compact entry that is written next."""
        return spark_log.next_compact(self.next_entry)

    def exists(self) -> bool:
        """Whether the table has a log yet."""
        return self._files.is_directory(self._directory)

    def make(self, schema_file: DataFile) -> None:
        """Create the log of a new table, which lists only `schema_file`, in one step."""
        unfinished = self._table / names.temporary(names.SPARK_LOG)
        delete_tree(self._files, unfinished)
        self._files.make_directory(unfinished)
        for entry in spark_log.FIRST_COMPACTS:
            write_durably(self._files, unfinished / entry_name(entry), self._content([]))
        first = unfinished / entry_name(spark_log.FIRST_ENTRY)
        write_durably(self._files, first, self._content([schema_file]))
        rename_durably(self._files, unfinished, self._directory)

    def load(self) -> None:
        """Read the live files. Raises TableDamagedError. Deletes the leftovers of a crash."""
        self._entries = sorted(self._scan())
        self.live = [file for entry in self._current() for file in self._read(entry)]
        if not self.live:
            raise damaged(self._table, f"{names.SPARK_LOG} lists no file")

    def append(self, added: DataFile) -> None:
        """Publish a data file."""
        entry = self.next_entry
        self._write(entry, [*self.live, added] if is_compact(entry) else [added])
        self.live.append(added)

    def replace(self, live: list[DataFile]) -> None:
        """Change the list of live files, by the next compact entry."""
        self._write(self.next_compact, live)
        self.live = live

    def _write(self, entry: int, listed: list[DataFile]) -> None:
        write_durably(self._files, self._directory / entry_name(entry), self._content(listed))
        self._entries.append(entry)

    def delete_superseded(self) -> None:
        """Delete entries that no reader needs any more."""
        gone = spark_log.superseded(self._entries)
        for entry in gone:
            self._files.delete(self._directory / entry_name(entry))
        self._entries = self._entries[len(gone) :]

    def _content(self, listed: list[DataFile]) -> bytes:
        return spark_log.format_entry(PurePosixPath(self._table), listed)

    def _scan(self) -> Iterator[int]:
        for name in self._files.list_directory(self._directory):
            entry = spark_log.entry_of_name(name)
            if entry is not None:
                yield entry
            elif names.is_temporary(name):
                self._files.delete(self._directory / name)

    def _current(self) -> list[int]:
        """The newest compact entry and those after it, without a gap."""
        compacts = [entry for entry in self._entries if is_compact(entry)]
        if not compacts:
            raise damaged(self._table, f"{names.SPARK_LOG} has no compact entry")
        current = [entry for entry in self._entries if entry >= compacts[-1]]
        if current != list(range(current[0], current[0] + len(current))):
            raise damaged(self._table, f"an entry after {current[0]} is missing from {names.SPARK_LOG}")
        return current

    def _read(self, entry: int) -> Iterator[DataFile]:
        path = self._directory / entry_name(entry)
        try:
            listed = list(spark_log.parse_entry(self._files.read(path)))
        except LogFormatError as error:
            raise damaged(self._table, f"{path} is damaged: {error}") from error
        for directory, file in listed:
            if directory != PurePosixPath(self._table):
                raise TableMovedError(
                    f"opening the plain table in {self._table}: {path} names files of {directory}. If the "
                    f"table was moved, run: faircopy tables relocate {self._table}"
                )
            yield file
