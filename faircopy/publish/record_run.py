"""A run: the records of successive batches, laid end to end, which are then converted to columns.

Batches of one message are common (small transactions have them), and so are partitions with few batches, but
a call of an Arrow kernel costs microseconds even for few rows. So batches share a run. The values that all
rows of a batch have in common are kept once, as an *origin*; each row has the number of its origin.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from faircopy.publish.fields import ROWS_AT_MOST
from faircopy.publish.record_ends import walk
from faircopy.wire.batch import LOG_APPEND_TIME, BatchHeader
from faircopy.wire.compression import Bytes

RUN_BYTES = 2 * 1024 * 1024
_RECORDS_AT_ONCE = 1024  # of a large batch, since `walk` notices only afterwards that it has gone too far


class Source(NamedTuple):
    """The log that a batch comes from; only offsets from `first_offset` on are wanted."""

    topic: str
    partition: int
    first_offset: int


class LoggedBatch(NamedTuple):
    """A whole batch of the log, header included, in `data` from byte `at`."""

    source: Source
    header: BatchHeader
    data: Bytes
    at: int
    txid: str | None


class Origin(NamedTuple):
    """The values that all rows of a batch, or of a part of it, have in common.

    `source` is the number of the batch's source in the run. A row's offset is its number in the run plus
    `offset_shift`; its end in the payload is the end that `walk` found plus `end_shift`.
    """

    source: int
    base_offset: int
    offset_shift: int
    end_shift: int
    timestamp_ms: int
    timestamp_type: int
    txid: str | None


class RecordRun:
    """Row i ends at `ends[i]`, plus a shift, in `payload`, and belongs to `origins[origin[i]]`."""

    __slots__ = ("ends", "origin", "origins", "payload", "sources")

    def __init__(self) -> None:
        self.payload = bytearray()
        self.ends: list[int] = []
        self.origin = array("i")
        self.origins: list[Origin] = []
        self.sources: list[Source] = []

    @property
    def is_full(self) -> bool:
        """Whether it holds as many rows or bytes as are converted at once."""
        return len(self.ends) >= ROWS_AT_MOST or len(self.payload) >= RUN_BYTES

    def add(self, batch: LoggedBatch, data: Bytes, at: int, stop: int, done: int) -> tuple[int, int]:
        """Take records of `batch`, of which `done` were taken before, from `data` between `at` and `stop`.

        Returns how many fitted, and where the next one begins: at `stop` if there is none, or none that can
        be told from garbage.
        """
        rows = len(self.ends)
        room = min(batch.header.records - done, ROWS_AT_MOST - rows)
        if stop - at > RUN_BYTES:
            # A small batch may decompress to very much: take what fits into a run, or one record larger than
            # that.
            walk(data, at, at + RUN_BYTES, min(room, _RECORDS_AT_ONCE), self.ends)
            room = min(room, 1)
        if len(self.ends) == rows:
            walk(data, at, stop, room, self.ends)
        taken = len(self.ends) - rows
        if not taken:
            return 0, stop
        self.origin.extend(array("i", (len(self.origins),)) * taken)
        self.origins.append(self._origin(batch, done - rows, len(self.payload) - at))
        self.payload += data[at : self.ends[-1]]
        return taken, self.ends[-1]

    def _origin(self, batch: LoggedBatch, row_shift: int, end_shift: int) -> Origin:
        header = batch.header
        if not self.sources or self.sources[-1] is not batch.source:
            self.sources.append(batch.source)
        stamped = header.attributes & LOG_APPEND_TIME
        return Origin(
            len(self.sources) - 1,
            header.base_offset,
            header.base_offset + row_shift,
            end_shift,
            header.max_timestamp_ms if stamped else header.base_timestamp_ms,
            1 if stamped else 0,
            batch.txid,
        )
