"""The `_delta_log` directory of one table, which follows Spark's log of it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from crc32c import crc32c

from faircopy.publish import delta_log, names
from faircopy.publish.data_file import Written
from faircopy.publish.delta_log import Action, DeltaFormatError, LastCheckpoint, Snapshot
from faircopy.publish.file_content import content_in
from faircopy.publish.files import Files, delete_tree, rename_durably, write_durably
from faircopy.publish.offsets import NextOffsets
from faircopy.publish.spark_log import DataFile

log = logging.getLogger(__name__)


class DeltaDirectory:
    """The Delta log of the table in `directory`."""

    def __init__(self, files: Files, directory: Path) -> None:
        self._files = files
        self._table = directory
        self._directory = directory / names.DELTA_LOG
        self._snapshot = Snapshot({}, {})
        self._version = -1

    @property
    def files(self) -> int:
        """How many files the log lists."""
        return len(self._snapshot.adds)

    def open(self, live: Sequence[DataFile], schema: pa.Schema, now_ms: int) -> None:
        """Load the log, and make it list what batch reads of `live` find, with the columns of `schema`; make
        it if it is not there.

        Raises FsyncError or OSError.
        """
        if self._files.is_directory(self._directory):
            try:
                self._load()
            except DeltaFormatError as error:
                log.error("%s is damaged, and is made again: %s", self._directory, error)
                delete_tree(self._files, self._directory)
        if not self._files.is_directory(self._directory):
            self._make(live, schema, now_ms)
        self.describe(schema)
        # A crash may have come between the two logs of one publication, which is the last.
        self.follow(live, now_ms, is_gone=False, newest=live[-1].name)

    def ends(self, name: str) -> NextOffsets:
        """Up to which offset a listed file goes, in each partition that it has rows of."""
        return delta_log.ends_of(self._snapshot.adds[name])

    def describe(self, schema: pa.Schema) -> None:
        """Say that the table has these columns, unless the log says so. Raises FsyncError or OSError."""
        described = delta_log.with_schema(self._snapshot.metadata, schema)
        if described != self._snapshot.metadata:
            self._commit([described])

    def publish(self, written: Written, now_ms: int) -> None:
        """Add a file with new rows. Raises FsyncError or OSError."""
        file = written.file
        self._commit([delta_log.add(file.name, file.size, now_ms, written.content, is_new=True)])

    def follow(
        self, live: Sequence[DataFile], now_ms: int, *, is_gone: bool, newest: str | None = None
    ) -> None:
        """List what batch reads of `live` find. `is_gone` says whether rows went with the files that went;
        `newest` is the only file that may bring rows which were not there before.

        Raises FsyncError or OSError.
        """
        wanted = {file.name: file for file in read_in_batch(live)}
        listed = self._snapshot.adds
        gone = [name for name in listed if name not in wanted]
        new = [file for file in wanted.values() if not self._lists(file)]
        actions = [
            *(delta_log.remove(name, now_ms, is_gone=is_gone) for name in gone),
            *(self._add(file, now_ms, is_new=file.name == newest) for file in new),
        ]
        if actions:
            self._commit(actions)

    def _lists(self, file: DataFile) -> bool:
        """Whether the log has what there is to say of a file."""
        listed = self._snapshot.adds.get(file.name)
        return listed is not None and delta_log.size_of(listed) == file.size

    def _add(self, file: DataFile, now_ms: int, *, is_new: bool) -> Action:
        content = content_in(self._files, self._table / file.name)
        return delta_log.add(file.name, file.size, now_ms, content, is_new=is_new)

    def _make(self, live: Sequence[DataFile], schema: pa.Schema, now_ms: int) -> None:
        """Make the log with its first version, in one step."""
        unfinished = self._table / names.temporary(names.DELTA_LOG)
        delete_tree(self._files, unfinished)
        self._files.make_directory(unfinished)
        write_durably(self._files, unfinished / delta_log.GUARD, delta_log.GUARD_CONTENT)
        added = [self._add(file, now_ms, is_new=True) for file in read_in_batch(live)]
        actions = [delta_log.PROTOCOL, delta_log.metadata(str(self._table), schema, now_ms), *added]
        write_durably(self._files, unfinished / delta_log.version_name(0), delta_log.format_version(actions))
        rename_durably(self._files, unfinished, self._directory)
        self._snapshot = delta_log.applied(None, actions)
        self._version = 0

    def _commit(self, actions: Sequence[Action]) -> None:
        version = self._version + 1
        path = self._directory / delta_log.version_name(version)
        write_durably(self._files, path, delta_log.format_version(actions))
        self._snapshot = delta_log.applied(self._snapshot, actions)
        self._version = version
        if delta_log.is_checkpoint(version):
            self._write_checkpoint()

    def _write_checkpoint(self) -> None:
        """Write the newest version as a whole, and delete what no reader needs any more."""
        path = self._directory / delta_log.checkpoint_name(self._version)
        content = delta_log.format_checkpoint(self._snapshot)
        write_durably(self._files, path, content)
        last = LastCheckpoint(self._version, len(self._snapshot.adds) + 2, crc32c(content))
        named = delta_log.format_last_checkpoint(last)
        write_durably(self._files, self._directory / delta_log.LAST_CHECKPOINT, named)
        for name in delta_log.superseded(self._files.list_directory(self._directory)):
            self._files.delete(self._directory / name)

    def _load(self) -> None:
        found = self._files.list_directory(self._directory)
        for name in filter(names.is_temporary, found):
            self._files.delete(self._directory / name)
        self._version, self._snapshot = read_delta_log(self._files, self._directory)
        if delta_log.GUARD not in found:
            write_durably(self._files, self._directory / delta_log.GUARD, delta_log.GUARD_CONTENT)


def read_in_batch(live: Sequence[DataFile]) -> list[DataFile]:
    """The files that batch reads take."""
    return [file for file in live if not file.is_covered and not names.is_schema(file.name)]


def read_delta_log(files: Files, directory: Path) -> tuple[int, Snapshot]:
    """The newest version in the `_delta_log` at `directory`. Raises DeltaFormatError or OSError."""
    found = files.list_directory(directory)
    newest, snapshot = -1, None
    if delta_log.LAST_CHECKPOINT in found:
        newest, snapshot = _read_checkpoint(files, directory)
    for version in delta_log.versions_from(newest + 1, found):
        path = directory / delta_log.version_name(version)
        try:
            snapshot = delta_log.applied(snapshot, delta_log.parse_version(files.read(path)))
        except DeltaFormatError as error:
            raise DeltaFormatError(f"{path}: {error}") from error
        newest = version
    if snapshot is None:
        raise DeltaFormatError(f"{directory} has neither a version 0 nor a checkpoint")
    return newest, snapshot


def _read_checkpoint(files: Files, directory: Path) -> tuple[int, Snapshot]:
    last = delta_log.parse_last_checkpoint(files.read(directory / delta_log.LAST_CHECKPOINT))
    path = directory / delta_log.checkpoint_name(last.version)
    try:
        content = files.read(path)
    except FileNotFoundError:
        raise DeltaFormatError(f"{path} is missing") from None
    # Damaged Parquet must not be read: it can make pyarrow end the process.
    if crc32c(content) != last.crc32c:
        raise DeltaFormatError(f"{path} does not match its checksum")
    return last.version, delta_log.parse_checkpoint(content)
