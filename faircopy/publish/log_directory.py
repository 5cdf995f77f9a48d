"""The `_spark_metadata` directory of one table: its entries on disk, and the live files that they list."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from crc32c import crc32c

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


class Compacted(NamedTuple):
    """The newest compact entry, and the CRC32C of its content."""

    entry: int
    checksum: int


class LogDirectory:
    """The log of the table in `directory`.

    It may list tens of thousands of files, and a publisher may have hundreds of tables. So the list stays on
    disk, and here is only its end: what was added since the newest compact entry.
    """

    def __init__(self, files: Files, directory: Path) -> None:
        self._files = files
        self._table = directory
        self._directory = directory / names.SPARK_LOG
        self._entries: list[int] = []
        self._compact = Compacted(-1, 0)
        self._added: list[DataFile] = []
        self.newest = DataFile("", 0, 0)
        self.count = 0

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

    def load(self) -> list[DataFile]:
        """Read the live files, oldest first. Raises TableDamagedError. Deletes the leftovers of a crash."""
        self._entries = sorted(self._scan())
        compact, *later = self._current()
        content = self._files.read(self._directory / entry_name(compact))
        self._compact = Compacted(compact, crc32c(content))
        self._added = [file for entry in later for file in self._read(entry)]
        live = [*self._parsed(compact, content), *self._added]
        if not live:
            raise damaged(self._table, f"{names.SPARK_LOG} lists no file")
        self.newest, self.count = live[-1], len(live)
        return live

    def live(self) -> list[DataFile]:
        """The live files, oldest first, read from disk. Raises TableDamagedError or OSError."""
        return [*self._parsed(self._compact.entry, self._compacted()), *self._added]

    def append(self, added: DataFile) -> None:
        """Publish a data file."""
        entry = self.next_entry
        if is_compact(entry):
            self._write_compact(entry, self._compacted(), [*self._added, added])
        else:
            self._write(entry, self._content([added]))
            self._added.append(added)
        self.newest, self.count = added, self.count + 1

    def replace(self, live: list[DataFile]) -> None:
        """Change the list of live files, by the next compact entry."""
        self._write_compact(self.next_compact, self._content([]), live)
        self.newest, self.count = live[-1], len(live)

    def _write_compact(self, entry: int, former: bytes, added: list[DataFile]) -> None:
        content = former + self._content(added).removeprefix(self._content([]))
        self._write(entry, content)
        self._compact, self._added = Compacted(entry, crc32c(content)), []

    def _write(self, entry: int, content: bytes) -> None:
        write_durably(self._files, self._directory / entry_name(entry), content)
        self._entries.append(entry)

    def _compacted(self) -> bytes:
        """The content of the newest compact entry."""
        path = self._directory / entry_name(self._compact.entry)
        content = self._files.read(path)
        if crc32c(content) != self._compact.checksum:
            raise damaged(self._table, f"{path} has changed since it was read or written")
        return content

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
        return self._parsed(entry, self._files.read(self._directory / entry_name(entry)))

    def _parsed(self, entry: int, content: bytes) -> Iterator[DataFile]:
        path = self._directory / entry_name(entry)
        try:
            listed = list(spark_log.parse_entry(content))
        except LogFormatError as error:
            raise damaged(self._table, f"{path} is damaged: {error}") from error
        for directory, file in listed:
            if directory != PurePosixPath(self._table):
                raise TableMovedError(
                    f"opening the plain table in {self._table}: {path} names files of {directory}. If the "
                    f"table was moved, run: faircopy tables relocate {self._table}"
                )
            yield file
