"""A run: records of successive batches of one partition, laid end to end, soon to be columns.

Batches of one message are common (each small transaction has some), and Arrow's kernels cost microseconds a
call however few rows they work on. So batches share a run, and what a batch gives all of its rows is kept
once, as an *origin*; each row knows the number of its origin.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from faircopy.publish.fields import ROWS_AT_MOST, walk
from faircopy.wire.batch import LOG_APPEND_TIME, BatchHeader
from faircopy.wire.compression import Bytes

RUN_BYTES = 4 * 1024 * 1024
_RECORDS_OF_LARGE_BATCH = 1024  # at a time, since `walk` sees only afterwards that it has gone too far


class LoggedBatch(NamedTuple):
    """A batch where it stands in the log: whole, from its header on, in `data` from byte `at`."""

    header: BatchHeader
    data: Bytes
    at: int
    txid: str | None


class Origin(NamedTuple):
    """What all rows of a batch, or of a part of it, have from it.

    A row's offset is its number in the run plus `offset_shift`; its end in the payload is where `walk`
    found it plus `end_shift`.
    """

    base_offset: int
    offset_shift: int
    end_shift: int
    timestamp_ms: int
    timestamp_type: int
    txid: str | None


class Run:
    """Row i ends at `ends[i]`, plus a shift, in `payload`, and came with `origins[origin[i]]`."""

    __slots__ = ("ends", "origin", "origins", "payload")

    def __init__(self) -> None:
        self.payload = bytearray()
        self.ends: list[int] = []
        self.origin = array("i")
        self.origins: list[Origin] = []

    @property
    def is_full(self) -> bool:
        return len(self.ends) >= ROWS_AT_MOST or len(self.payload) >= RUN_BYTES

    def add(self, batch: LoggedBatch, data: Bytes, at: int, stop: int, done: int) -> tuple[int, int]:
        """Take records of `batch`, which had `done` before, from `data` between `at` and `stop`.

        Returns how many fitted, and where the next one begins: at `stop` if there is none, or none that can
        be told from garbage.
        """
        rows = len(self.ends)
        self._walk(data, at, stop, min(batch.header.records - done, ROWS_AT_MOST - rows))
        taken = len(self.ends) - rows
        if not taken:
            return 0, stop
        self.origins.append(_origin(batch.header, batch.txid, done - rows, len(self.payload) - at))
        self.origin.extend(array("i", (len(self.origins) - 1,)) * taken)
        self.payload += memoryview(data)[at : self.ends[-1]]
        return taken, self.ends[-1]

    def _walk(self, data: Bytes, at: int, stop: int, records: int) -> None:
        """As `walk`, but over about RUN_BYTES: a small batch may decompress to very much."""
        rows = len(self.ends)
        if stop - at > RUN_BYTES:
            walk(data, at, at + RUN_BYTES, min(records, _RECORDS_OF_LARGE_BATCH), self.ends)
            records = min(records, 1)  # the next one may be larger than all of a run
        if len(self.ends) == rows:
            walk(data, at, stop, records, self.ends)


def _origin(header: BatchHeader, txid: str | None, row_shift: int, end_shift: int) -> Origin:
    stamped = bool(header.attributes & LOG_APPEND_TIME)
    return Origin(
        header.base_offset,
        header.base_offset + row_shift,
        end_shift,
        header.max_timestamp_ms if stamped else header.base_timestamp_ms,
        int(stamped),
        txid,
    )
