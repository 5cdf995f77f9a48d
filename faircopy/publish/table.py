"""One plain table: a directory of Parquet files, and the log that says which of them are live.

A publication takes effect with the rename of an entry of Spark's log. A crash can lose all that happened
before it without a trace, and all that happens after it can be repeated; the Delta log catches up when the
table is opened. So recovery leads to the same table, whatever it finds; publishing continues from the offsets
in the footer of the newest published file. A lock keeps others from writing to the directory.

Whatever changes the list is done in four steps: new files, Spark's log, the Delta log, and only then the
deletion of files that both no longer list.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

from faircopy.errors import FaircopyError
from faircopy.publish import names, spark_log
from faircopy.publish.columns import decode
from faircopy.publish.compaction import unmerged_in
from faircopy.publish.data_file import DataFileWriter, Written, write_data_file
from faircopy.publish.delta_directory import DeltaDirectory
from faircopy.publish.files import Files, make_directories
from faircopy.publish.layout import NO_COLUMNS, Layout
from faircopy.publish.log_directory import LogDirectory
from faircopy.publish.log_reader import read_batches
from faircopy.publish.offsets import NOTHING_HELD, Held
from faircopy.publish.recovery import recover
from faircopy.publish.requests import Cut, Published, Tidied
from faircopy.publish.retired import RetiredFiles
from faircopy.publish.schema import Selection
from faircopy.publish.spark_log import DataFile
from faircopy.publish.table_columns import extended, is_by_day
from faircopy.publish.trimmer import Trimmer
from faircopy.publish.trimming import Upkeep, units
from faircopy.publish.upkeep import Merger
from faircopy.publish.value_columns import ValueColumns

log = logging.getLogger(__name__)

MANY_LISTED_FILES = 200_000


class MixedTopicsError(FaircopyError):
    """A topic has the name of another one whose rows the table holds; nothing was published."""


class Table:
    """An open table. After any error of `publish`, close it and open it again."""

    def __init__(self, files: Files, directory: Path, clock_ms: Callable[[], int]) -> None:
        """Open the table in `directory` (absolute), or create it; recover it from a crash.

        `clock_ms` gives the time that measures the age of files. Raises TableDamagedError, OtherFormatError,
        LockedError, FsyncError or OSError.
        """
        self._files = files
        self._directory = directory
        self._clock_ms = clock_ms
        self._warned_at = 0
        self._log = LogDirectory(files, directory)
        self._retired = RetiredFiles(files, directory)
        self._delta = DeltaDirectory(files, directory)
        self._merger = Merger(files, directory)
        self._trimmer = Trimmer(files, directory, self._delta.ends)
        make_directories(files, directory)
        self._lock = files.lock(directory / names.LOCK)
        try:
            self.held, live, self.schema = recover(files, directory, self._log, self._retired, clock_ms())
            self._delta.open(live, self.schema, clock_ms())
            self._unmerged = unmerged_in(live, by_day=is_by_day(self.schema))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the lock."""
        self._lock.close()

    @property
    def live(self) -> Sequence[DataFile]:
        """The live files, oldest first, read from disk."""
        return self._log.live()

    def adopt(self, layout: Layout) -> None:
        """Give the table the columns that a layout asks for.

        Readers take the columns from the file without rows, so another one takes its place before any file
        has the new columns. Raises TableSchemaError, FsyncError or OSError.
        """
        schema = extended(self.schema, layout)
        if schema.equals(self.schema):
            return
        live, now_ms = self._log.live(), self._now_ms()
        path = self._directory / names.later_schema(self._log.next_compact)
        described = write_data_file(self._files, path, now_ms, schema, lambda writer: NOTHING_HELD)
        left = [file for file in live if not names.is_schema(file.name)]
        self._log.replace([described.file, *left])
        self._retired.add([file.name for file in live if names.is_schema(file.name)], now_ms)
        self._retired.save()
        self._delta.describe(schema)
        self.schema = schema
        self._unmerged = unmerged_in(left, by_day=is_by_day(schema))

    def publish(
        self,
        cuts: Sequence[Cut],
        layout: Layout = NO_COLUMNS,
        selection: Selection = Selection.ALL,
        on_misfits: Callable[[Sequence[Cut]], None] = lambda cuts: None,
    ) -> Published:
        """Add one file with the rows of `cuts` that the table does not have yet: all of them, or none.

        `layout` says what becomes of values, and `selection` which rows the table has. If FITTING leaves some
        out, `on_misfits` has to publish those of the cuts that it is given, before the others can be read.
        Raises LogMismatchError, MixedTopicsError, TableSchemaError, BadValueError, FsyncError or OSError;
        after the last two the rows may have been published.
        """
        if selection is not Selection.MISFITS:
            self.adopt(layout)
        self._ensure_same_topics(cuts)
        new = sorted(cut for cut in cuts if cut.end_offset > self._next(cut))
        if not new:
            return self._reply(self._log.next_entry - 1)
        expected = sum(cut.end_offset - self._begin(cut) for cut in new)
        missed = sum(self._begin(cut) - self._next(cut) for cut in new if self._has_begun(cut))
        held = self._held_after(new)
        entry = self._log.next_entry
        values = ValueColumns(self.schema, layout, selection)
        written = self._write(entry, new, held, values)
        if selection is Selection.FITTING and values.left_out:
            on_misfits([cut._replace(first_offset=self._begin(cut)) for cut in new])
        self._log.append(written.file)
        self._unmerged = self._unmerged.with_file(written.file)
        self.held = held
        self._delta.publish(written, self._clock_ms())
        if spark_log.is_compact(entry):
            self._merge()
            self._delete_superseded()
            self._warn_if_large()
        rows, left_out = written.content.rows, values.left_out
        skipped = expected - rows - left_out
        return self._reply(entry, rows, written.file.size, skipped, missed)._replace(dead_letters=left_out)

    def tidy(self, upkeep: Upkeep) -> Tidied:
        """Drop what is not kept, and delete what was dropped before the grace.

        Raises DeltaFormatError, FsyncError or OSError.
        """
        now_ms = self._now_ms()
        live = self._log.live()
        left = self._trimmer.left(live, upkeep, now_ms)
        dropped = {file.name for file in live} - {file.name for file in left}
        if dropped:
            self._drop(left, dropped, now_ms)
        self._retired.delete_expired(self._clock_ms(), upkeep.grace_ms)
        self._retired.save()
        with_rows = sum(bool(self._delta.ends(unit.name)) for unit in units(self._log.live()))
        return Tidied(len(dropped), self._retired.count, with_rows)

    def _drop(self, left: list[DataFile], dropped: set[str], now_ms: int) -> None:
        if self._log.newest.name in dropped:
            self._publish_nothing()
            left = [*left, self._log.newest]
        self._log.replace(left)
        self._unmerged = unmerged_in(left, by_day=is_by_day(self.schema))
        self._delta.follow(left, self._clock_ms(), is_gone=True)
        self._retired.add(dropped, now_ms)
        self._retired.save()

    def _publish_nothing(self) -> None:
        """Publish a file without rows, which says what the table holds."""
        name = names.published(self._log.next_entry, [])
        path = self._directory / name
        written = write_data_file(self._files, path, self._now_ms(), self.schema, lambda writer: self.held)
        self._log.append(written.file)
        self._delta.publish(written, self._clock_ms())

    def _ensure_same_topics(self, cuts: Sequence[Cut]) -> None:
        for cut in cuts:
            if self.held.topic_ids.get(cut.topic, cut.topic_id) != cut.topic_id:
                raise MixedTopicsError(
                    f"it holds rows of another topic that was called {cut.topic!r}: give this one a table of "
                    f"its own (topic setting plain.table)"
                )

    def _next(self, cut: Cut) -> int:
        return self.held.next_offsets.get(cut.topic, {}).get(cut.partition, 0)

    def _has_begun(self, cut: Cut) -> bool:
        """Whether the table has been given any offsets of this partition."""
        return cut.partition in self.held.next_offsets.get(cut.topic, {})

    def _begin(self, cut: Cut) -> int:
        """The first offset to publish: the table's next one, though a repeated request starts earlier."""
        return max(cut.first_offset, self._next(cut))

    def _held_after(self, cuts: Sequence[Cut]) -> Held:
        after = {topic: dict(partitions) for topic, partitions in self.held.next_offsets.items()}
        for cut in cuts:
            after.setdefault(cut.topic, {})[cut.partition] = cut.end_offset
        return Held(after, self.held.topic_ids | {cut.topic: cut.topic_id for cut in cuts})

    def _write(self, entry: int, cuts: Sequence[Cut], held: Held, values: ValueColumns) -> Written:
        """Write the file of a publication."""

        def fill(writer: DataFileWriter) -> Held:
            batches = (read_batches(self._files, cut, self._begin(cut)) for cut in cuts)
            for rows in decode(chain.from_iterable(batches)):
                for selected in values.add_to(rows):
                    writer.add(*selected)
            writer.selection = values.selected
            return held

        name = names.published(entry, [(self._begin(cut), cut.end_offset) for cut in cuts])
        return write_data_file(self._files, self._directory / name, self._now_ms(), self.schema, fill)

    def _now_ms(self) -> int:
        """The time of a new entry, which is never before that of the last one."""
        return max(self._clock_ms(), self._log.newest.modified_ms)

    def _merge(self) -> None:
        """Merge what is due. The rows stay the same for all readers."""
        if not self._unmerged.is_due:
            return
        live = self._merger.merged(self._log.live(), self._log.next_compact, self.schema)
        if live is not None:
            self._log.replace(live)
            self._unmerged = unmerged_in(live, by_day=is_by_day(self.schema))
            self._delta.follow(live, self._clock_ms(), is_gone=False)

    def _delete_superseded(self) -> None:
        """Delete entries that no reader needs any more. If that fails, the publication is still valid."""
        try:
            self._log.delete_superseded()
        except OSError as error:
            log.warning("deleting old entries in %s: %s", self._directory, error)

    def _warn_if_large(self) -> None:
        """Say so when the list is long, and again with each tenth that it grows by."""
        count = self._log.count
        if count < max(MANY_LISTED_FILES, self._warned_at + MANY_LISTED_FILES // 10):
            return
        self._warned_at = count
        log.log(
            logging.ERROR if count >= 2 * MANY_LISTED_FILES else logging.WARNING,
            "the plain table in %s lists %d files, and Spark parses the list at each trigger, so more than "
            "%d are too many. Keep rows for a shorter time (plain.retention.ms), publish less often "
            "(plain.interval.ms), or go on with a new table (plain.table)",
            self._directory,
            count,
            MANY_LISTED_FILES,
        )

    def _reply(
        self, sequence: int, rows: int = 0, size: int = 0, skipped: int = 0, missed: int = 0
    ) -> Published:
        return Published(sequence, rows, size, skipped, missed, self._delta.files)
