"""The check of a plain table: its own files, Spark's log, its data files, and its rows, compared with the
broker's log.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from faircopy.errors import FaircopyError
from faircopy.publish import delta_log, names, spark_log, table_state
from faircopy.publish.checksum import is_sound
from faircopy.publish.delta_directory import read_delta_log
from faircopy.publish.delta_log import Action
from faircopy.publish.file_content import Content, content_of
from faircopy.publish.files import Files
from faircopy.publish.offsets import NOTHING_HELD, Held
from faircopy.publish.schema import Footer, FooterError, Selection, parse_footer
from faircopy.publish.spark_log import DataFile, LogFormatError, is_compact
from faircopy.verify.child import in_child
from faircopy.verify.findings import Advance, Finding
from faircopy.verify.log_rows import LogRows
from faircopy.verify.parquet_damage import where_damaged

TopicPartition = tuple[str, int]


class TablePartition(NamedTuple):
    """A partition as a table names it; the id is in hexadecimal."""

    topic: str
    topic_id: str
    partition: int


PATIENCE_SECONDS = 10.0


class PlainTableCheck:
    """The check of the table in `directory` (absolute). `open_log` gives a partition's rows if possible."""

    def __init__(
        self, directory: Path, open_log: Callable[[TablePartition], LogRows | None], advance: Advance
    ) -> None:
        self._directory = directory
        self._spark_log = directory / names.SPARK_LOG
        self._open_log = open_log
        self._log_of = cache(open_log)
        self._advance = advance
        self._files = Files()
        self._listed: dict[int, list[DataFile]] = {}
        self._added: dict[str, Action] = {}

    def run(self) -> Iterator[Finding]:
        """All findings."""
        if not self._is_left_alone():
            yield Finding(
                self._directory / names.LOCK,
                None,
                "a publisher is still running: check again when it has ended",
            )
            return
        found = self._files.list_directory(self._directory)
        if names.SPARK_LOG not in found:
            strange = [name for name in found if names.sequence_of(name) is not None]
            if len(strange) > 1:
                yield Finding(
                    self._spark_log, None, f"it is missing, and there are {len(strange)} data files"
                )
            return
        yield from self._read_entries()
        live = list(self._live())
        yield from self._check_state({file.name for file in live})
        yield from self._read_delta_log(found)
        if not live:
            yield Finding(self._spark_log, None, "it lists no file, or an entry is missing or damaged")
        for file in self._listed_before(live):
            if file.name in found:
                yield from self._check_file(file, found[file.name])[1]
                self._advance(found[file.name])
        yield from self._check_live([file for file in live if not file.is_covered], found)
        yield from self._check_live([file for file in live if file.is_covered], found)

    def _check_live(self, live: list[DataFile], found: Mapping[str, int]) -> Iterator[Finding]:
        """Check files that follow each other. Batch reads take one series of them, and streams other ones."""
        self._log_of = cache(self._open_log)  # each is read once, forwards
        reached: Held = NOTHING_HELD
        for file in live:
            footer, findings = self._check_file(file, found.get(file.name))
            yield from findings
            if footer is not None:
                yield from self._check_rows(file, footer, reached)
                reached = footer.held
            self._advance(found.get(file.name, 0))
        yield from self._check_reach(reached)

    def _is_left_alone(self) -> bool:
        """Wait until nobody writes to the table; a killed broker's publisher may need some moments to end.
        False if it does not end."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._files.is_locked(self._directory / names.LOCK):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    # -- Spark's log -----------------------------------------------------------------------------------------

    def _read_entries(self) -> Iterator[Finding]:
        for name, size in sorted(self._files.list_directory(self._spark_log).items()):
            entry = spark_log.entry_of_name(name)
            if entry is not None:
                yield from self._read_entry(entry, self._spark_log / name)
                self._advance(size)

    def _read_entry(self, entry: int, path: Path) -> Iterator[Finding]:
        listed: list[DataFile] = []
        here = PurePosixPath(self._directory)
        try:
            for directory, file in spark_log.parse_entry(self._files.read(path)):
                if directory != here:
                    raise LogFormatError(
                        f"it names files of {directory}: if the table was moved, run: faircopy tables "
                        f"relocate {self._directory}"
                    )
                listed.append(file)
        except LogFormatError as error:
            byte = len(spark_log.format_entry(here, listed)) + 1 if listed else 0
            yield Finding(path, byte, str(error))
            return
        self._listed[entry] = listed

    def _live(self) -> Iterator[DataFile]:
        """The live files, in the order of their rows; none if an entry is missing or damaged.

        A merged file comes before the files that it covers, whatever its number is.
        """
        there = [spark_log.entry_of_name(name) for name in self._files.list_directory(self._spark_log)]
        newest = max((entry for entry in there if entry is not None), default=-1)
        compact = max((entry for entry in self._listed if is_compact(entry)), default=newest + 1)
        current = range(compact, newest + 1)
        if all(entry in self._listed for entry in current):
            for entry in current:
                yield from self._listed[entry]

    def _listed_before(self, live: list[DataFile]) -> list[DataFile]:
        """The files that an entry lists and that are no longer live."""
        listed = dict.fromkeys(file for entry in sorted(self._listed) for file in self._listed[entry])
        counting = set(live)
        return [file for file in listed if file not in counting]

    # -- the table's own file --------------------------------------------------------------------------------

    def _check_state(self, live: set[str]) -> Iterator[Finding]:
        path = self._directory / names.STATE
        try:
            retired = table_state.parse_state(self._files.read(path), str(self._directory))
        except (FaircopyError, OSError, ValueError, TypeError, KeyError) as error:
            yield Finding(path, None, f"it is damaged, or missing ({error})")
            return
        for name in sorted(live & retired.keys()):
            yield Finding(path, None, f"it lists {name} for deletion, which is live")

    # -- the Delta log ---------------------------------------------------------------------------------------

    def _read_delta_log(self, found: Mapping[str, int]) -> Iterator[Finding]:
        """Read it. A crash may have left it one step behind, so files may be missing there, or too many."""
        path = self._directory / names.DELTA_LOG
        if not self._files.is_directory(path):
            return  # it is made when the table is opened
        try:
            self._added = read_delta_log(self._files, path)[1].adds
        except (FaircopyError, OSError) as error:
            yield Finding(path, None, str(error))
        for name in self._added.keys() - found.keys():
            yield Finding(path, None, f"it lists {name}, which is missing")

    # -- data files ------------------------------------------------------------------------------------------

    def _check_file(self, file: DataFile, size: int | None) -> tuple[Footer | None, list[Finding]]:
        path = self._directory / file.name
        if size is None or (size != file.size and not file.is_covered):
            has = "it is missing" if size is None else f"it has {size:,} bytes, but {file.size:,} are listed"
            return None, [Finding(path, None if size is None else min(size, file.size), has)]
        if not is_sound(self._files, self._directory, file):
            byte, where = in_child(lambda: where_damaged(path)) or (
                None,
                ", and reading it crashes a process",
            )
            return None, [Finding(path, byte, f"it does not match the checksum in its name{where}")]
        try:
            footer, content = self._footer(path)
        except (FooterError, pa.ArrowException, OSError) as error:
            return None, [Finding(path, None, str(error))]
        return footer, list(self._check_added(file, content))

    def _check_added(self, file: DataFile, content: Content) -> Iterator[Finding]:
        """Check what the Delta log says of a file: readers count rows by it."""
        added = self._added.get(file.name)
        if added is None or file.is_covered:
            return
        modified_ms, is_new = (added["add"].get(name) for name in ("modificationTime", "dataChange"))
        if added != delta_log.add(file.name, file.size, modified_ms, content, is_new=is_new):
            yield Finding(self._directory / names.DELTA_LOG, None, f"it describes {file.name} wrongly")

    def _footer(self, path: Path) -> tuple[Footer, Content]:
        with pq.ParquetFile(path) as parquet:
            footer = parse_footer(parquet.metadata.metadata, str(path))
            rows = sum(part.rows for part in footer.slices)
            if rows != parquet.metadata.num_rows:
                raise FooterError(f"it has {parquet.metadata.num_rows} rows, but its footer counts {rows}")
            return footer, content_of(parquet.metadata, footer)

    # -- rows ------------------------------------------------------------------------------------------------

    def _check_rows(self, file: DataFile, footer: Footer, reached: Held) -> Iterator[Finding]:
        """Check the rows of a live file: they continue where the table ended, and equal those of the log."""
        path = self._directory / file.name
        parts = [(part.topic, part.partition, part.rows) for part in footer.slices]
        with pq.ParquetFile(path) as parquet:
            for number in range(parquet.num_row_groups):
                rows = parquet.read_row_group(number, use_threads=False)
                while rows.num_rows and parts:
                    topic, partition, left = parts[0]
                    count = min(left, rows.num_rows)
                    parts[0] = (topic, partition, left - count)
                    parts = parts if left > count else parts[1:]
                    yield from self._check_part(
                        path, rows.slice(0, count), (topic, partition), footer, reached
                    )
                    rows = rows.slice(count)

    def _check_part(
        self, path: Path, rows: pa.Table, partition: TopicPartition, footer: Footer, reached: Held
    ) -> Iterator[Finding]:
        """Check the contiguous rows of one partition."""
        topic, number = partition
        first, last = rows["offset"][0].as_py(), rows["offset"][-1].as_py()
        begin, end = (held.next_offsets.get(topic, {}).get(number, 0) for held in (reached, footer.held))
        if first < begin or last >= end:
            yield Finding(
                path, None, f"offsets {first} to {last} of {topic}-{number} are not within {begin} to {end}"
            )
        log = self._log_of(TablePartition(topic, footer.held.topic_ids.get(topic, ""), number))
        is_selection = footer.selection is not Selection.ALL
        differs_at = log.first_difference(rows, first, last, is_selection=is_selection) if log else None
        if differs_at is not None:
            yield Finding(path, None, f"the row of offset {differs_at} of {topic}-{number} is not the log's")

    def _check_reach(self, reached: Held) -> Iterator[Finding]:
        for topic, offsets in reached.next_offsets.items():
            for number, offset in offsets.items():
                log = self._log_of(TablePartition(topic, reached.topic_ids.get(topic, ""), number))
                if log is not None and log.end_offset is not None and offset > log.end_offset:
                    yield Finding(
                        self._directory,
                        None,
                        f"it holds {topic}-{number} up to offset {offset - 1}, but the log ends with "
                        f"{log.end_offset - 1}: the log has lost messages",
                    )
