"""Takes deleted rows out of files that have others, which stay: DeleteRecords means that they are gone.

Each file is replaced by one without these rows, in its place (`publish/rewrite.py`). Spark's log does not
change. The Delta log says how many rows a file has, so it is told first that this is not known:

1. new content, under temporary names
2. the Delta log lists the files without statistics, which is true before and after
3. the new files take the names of the former ones, each in one step
4. the Delta log lists the files with their statistics

After a crash, files without statistics are measured when the table is opened, and the broker asks again. The
small files that a merged one covers come before it. So if it has no such rows any more, neither have they.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from faircopy.publish import names
from faircopy.publish.checksum import is_sound
from faircopy.publish.delta_directory import DeltaDirectory
from faircopy.publish.files import Files
from faircopy.publish.offsets import NextOffsets
from faircopy.publish.parquet_footer import FooterFormatError
from faircopy.publish.rewrite import NoRoomError, Rewritten, has_rows_below, write_without
from faircopy.publish.schema import FooterError
from faircopy.publish.spark_log import DataFile
from faircopy.publish.trimming import Unit, Upkeep, units

log = logging.getLogger(__name__)

FILES_AT_ONCE = 100  # others wait meanwhile: so many take a second or two
BYTES_AT_ONCE = 32 * 1024 * 1024


class Erased(NamedTuple):
    """How many files were rewritten, and whether there may be more to do."""

    files: int
    is_over: bool


class Eraser:
    """Erases rows of the table in `directory`, some files at a time."""

    def __init__(self, files: Files, directory: Path, delta: DeltaDirectory) -> None:
        self._files = files
        self._directory = directory
        self._delta = delta
        self._firsts: NextOffsets = {}
        self._done: set[str] = set()

    def erase(self, live: Sequence[DataFile], upkeep: Upkeep, now_ms: int) -> Erased:
        """Erase what `upkeep` says is deleted from some of the live files.

        Raises FsyncError or OSError, and DeltaFormatError.
        """
        firsts = {keep.topic: dict(keep.deleted) for keep in upkeep.keeps if keep.deleted}
        if firsts != self._firsts:
            self._firsts, self._done = firsts, set()
        if not firsts:
            return Erased(0, is_over=True)
        chosen: list[Rewritten] = []
        is_over = True
        waiting_bytes = 0
        for file in self._candidates(live):
            if len(chosen) >= FILES_AT_ONCE or waiting_bytes >= BYTES_AT_ONCE:
                is_over = False
                break
            size = self._size(file)
            self._done.add(file.name)
            rewritten = self._written(file, size)
            if rewritten is not None:
                chosen.append(rewritten)
                waiting_bytes += size
        self._replace(chosen, now_ms)
        return Erased(len(chosen), is_over)

    def _candidates(self, live: Sequence[DataFile]) -> Iterator[DataFile]:
        """The files with deleted rows that were not looked at yet, in the order to rewrite them in."""
        reached: set[tuple[str, int]] = set()
        wanted = {(topic, partition) for topic, firsts in self._firsts.items() for partition in firsts}
        for unit in units(live):
            if reached == wanted:
                return
            ends = self._delta.ends(unit.name)
            held = {(topic, each): end for topic, its in ends.items() for each, end in its.items()}
            if held.keys() & (wanted - reached):
                yield from self._of_unit(unit)
            reached |= {each for each in wanted & held.keys() if held[each] >= self._firsts[each[0]][each[1]]}

    def _of_unit(self, unit: Unit) -> Iterator[DataFile]:
        readable_by_all, *covered = unit.files
        if readable_by_all.name not in self._done and self._has_deleted(readable_by_all):
            yield from (file for file in covered if file.name not in self._done and self._has_deleted(file))
            yield readable_by_all

    def _has_deleted(self, file: DataFile) -> bool:
        """Whether a file has deleted rows. A damaged one must not be read: it can make pyarrow end the
        process.
        """
        try:
            if is_sound(self._files, self._directory, file):
                return has_rows_below(self._files, self._directory / file.name, self._firsts)
            why = "it does not match the checksum in its name"
        except (pa.ArrowException, FooterError) as error:
            why = str(error)
        log.error("deleted rows stay in %s: %s", self._directory / file.name, why)
        self._done.add(file.name)
        return False

    def _written(self, file: DataFile, size: int) -> Rewritten | None:
        try:
            return write_without(self._files, self._directory, file, size, self._firsts)
        except (NoRoomError, FooterError, FooterFormatError, pa.ArrowException) as error:
            log.error("deleted rows stay in %s until all its rows go: %s", self._directory / file.name, error)
            return None

    def _size(self, file: DataFile) -> int:
        with self._files.open_to_read(self._directory / file.name) as opened:
            return opened.seek(0, 2)

    def _replace(self, rewritten: Sequence[Rewritten], now_ms: int) -> None:
        """Put new files in the places of former ones."""
        if not rewritten:
            return
        self._delta.forget_statistics([each.name for each in rewritten])
        for each in rewritten:
            path = self._directory / each.name
            self._files.rename(path.with_name(names.temporary(each.name)), path)
        self._files.sync_directory(self._directory)
        self._delta.measure({each.name: each.content for each in rewritten}, now_ms)
