"""The rows of a partition's log in the form of a plain table, read from its files from front to back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from faircopy.copier.checkpoint import Checkpoint
from faircopy.copier.span_chunk import Span
from faircopy.publish.columns import decode
from faircopy.publish.files import Files
from faircopy.publish.log_reader import LogMismatchError, read_batches
from faircopy.publish.requests import Chunk, Cut
from faircopy.publish.schema import SCHEMA
from faircopy.verify.log_files import base_offset_of, log_files


class LogRows:
    """The rows of one partition's log up to its checkpoint, which must be requested in the order of their
    offsets.

    `name` has the topic, its id, and the partition's number. `end_offset` is the log's end when the journal
    is folded to its own end; None if that is not known.
    """

    def __init__(
        self,
        name: tuple[str, str, int],
        directory: Path,
        checkpoint: Checkpoint | None,
        spans: list[Span],
        end_offset: int | None,
    ) -> None:
        self.end_offset = end_offset
        self._first = self._end = 0
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._waiting = SCHEMA.empty_table()
        if checkpoint is not None and checkpoint.log_segment_base is not None:
            self._open(name, directory, checkpoint, spans)

    def _open(
        self, name: tuple[str, str, int], directory: Path, checkpoint: Checkpoint, spans: list[Span]
    ) -> None:
        base = checkpoint.log_segment_base or 0
        paths = [path for path in log_files(directory) if (base_offset_of(path) or 0) <= base]
        if not paths:
            return
        self._first, self._end = base_offset_of(paths[0]) or 0, checkpoint.next_offset
        chunks = [Chunk(str(path), 0, path.stat().st_size) for path in paths[:-1]]
        chunks.append(Chunk(str(paths[-1]), 0, checkpoint.log_byte))
        texts = tuple((span.first_offset, span.last_offset, str(span.transaction)) for span in spans)
        cut = Cut(*name, self._first, self._end, tuple(chunks), texts)
        self._batches = (rows.batch for rows in decode(read_batches(Files(), cut, self._first)))

    def first_difference(
        self, rows: pa.Table, first: int, last: int, *, is_selection: bool = False
    ) -> int | None:
        """The first offset whose row in `rows`, which has offsets `first` to `last`, differs from the log's
        row. If it `is_selection`, some of these offsets are in another table.

        None if no row differs among those that the log still has.
        """
        first, last = max(first, self._first), min(last, self._end - 1)
        if first > last:
            return None
        try:
            expected = self._between(first, last)
        except LogMismatchError:
            self._end = 0  # the check of the log has already named the place
            return None
        given = within(rows, first, last).select(SCHEMA.names).cast(SCHEMA)
        if is_selection:
            expected = expected.filter(pc.is_in(expected["offset"], value_set=given["offset"]))
        given = without_unknown(given, expected)
        if given.equals(expected):
            return None
        return self._first_of(given, expected)

    def _between(self, first: int, last: int) -> pa.Table:
        while not self._waiting.num_rows or self._waiting["offset"][-1].as_py() < last:
            batch = next(self._batches, None)
            if batch is None:
                break
            self._waiting = pa.concat_tables([self._waiting, pa.Table.from_batches([batch], SCHEMA)])
        found = within(self._waiting, first, last)
        self._waiting = self._waiting.filter(pc.greater(self._waiting["offset"], last))
        return found

    def _first_of(self, given: pa.Table, expected: pa.Table) -> int:
        count = min(given.num_rows, expected.num_rows)
        for number in range(count):
            if not given.slice(number, 1).equals(expected.slice(number, 1)):
                return int(min(given["offset"][number].as_py(), expected["offset"][number].as_py()))
        longer = given if given.num_rows > count else expected
        return int(longer["offset"][count].as_py())


def without_unknown(given: pa.Table, expected: pa.Table) -> pa.Table:
    """`given` without the `txid` of rows whose transaction is unknown: the broker forgets published ones."""
    if given.num_rows != expected.num_rows:
        return given
    known = pc.if_else(expected["txid"].is_valid(), given["txid"], pa.scalar(None, SCHEMA.field("txid").type))
    return given.set_column(SCHEMA.get_field_index("txid"), SCHEMA.field("txid"), known)


def within(rows: pa.Table, first: int, last: int) -> pa.Table:
    """The rows with offsets from `first` to `last`."""
    offset = rows["offset"]
    return rows.filter(pc.and_(pc.greater_equal(offset, first), pc.less_equal(offset, last)))
