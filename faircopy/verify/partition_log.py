"""Compares a partition's log with its checkpoint (I6), its indexes, and the fold of its journal (I1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from faircopy.copier.checkpoint import Checkpoint
from faircopy.datalog.index import Place, Stretch
from faircopy.datalog.segment import UNKNOWN_MS, file_name
from faircopy.verify.findings import Advance, Finding
from faircopy.verify.log_files import DamagedLogFile, LogFile, ShownBatch, base_offset_of, log_files
from faircopy.verify.span_check import SpanCheck

SAME_FROM = 16
"""Up to this byte a batch in the log differs from the batch that its producer sent."""


class Expected(NamedTuple):
    """A batch that must be in the log, says the journal, and the epoch of the entry that put it there."""

    offset: int
    leader_epoch: int
    batch: memoryview


class Derived(NamedTuple):
    """A log's data in the state store: the stretches of its index by their offsets, times that no message is
    later than by the base offsets of segments, and spans.
    """

    stretches: dict[int, Stretch]
    latest_ms: dict[int, int]
    spans: SpanCheck


def base_of(batch: ShownBatch) -> int:
    """The base offset of the segment that has a batch."""
    return base_offset_of(batch.path) or 0


class PartitionLog:
    """The log's files. Bytes after the checkpoint's end are ignored: a start writes them again.

    Files wholly below the log's start are deleted. A crash may bring back some of them, with gaps.
    """

    def __init__(self, directory: Path, checkpoint: Checkpoint | None, advance: Advance) -> None:
        self.directory = directory
        self.findings: list[Finding] = []
        self._checkpoint = checkpoint
        self._advance = advance
        self._paths = log_files(directory)
        for path in self._paths:
            if base_offset_of(path) is None:
                self.findings.append(Finding(path, None, "this is not the name of a log file"))

    @property
    def end_base(self) -> int | None:
        """The base offset of the segment in which the log ends at its checkpoint; None if it has none."""
        return self._checkpoint.log_segment_base if self._checkpoint is not None else None

    # -- up to the checkpoint --------------------------------------------------------------------------------

    def batches(self) -> Iterator[ShownBatch]:
        """All sound batches up to the checkpoint's end. Notes a fault, and skips the rest of its file."""
        if self._checkpoint is None or self.end_base is None:
            return
        if self.directory / file_name(self.end_base) not in self._paths:
            self._note(
                self.directory / file_name(self.end_base),
                None,
                "the file is missing: the log should end in it",
            )
        paths = [path for path in self._paths if (base_offset_of(path) or 0) <= self.end_base]
        for path, following in zip(paths, [*paths[1:], None], strict=True):
            base = base_offset_of(path)
            after = base_offset_of(following) if following is not None else self._checkpoint.next_offset
            yield from self._file_batches(path, base or 0, after or 0)
        self._check_start(paths)

    def _file_batches(self, path: Path, base: int, after: int) -> Iterator[ShownBatch]:
        assert self._checkpoint is not None
        file = LogFile(path, self._advance)
        end = self._checkpoint.log_byte if base == self.end_base else None
        offset, byte = base, 0
        try:
            for batch in file.batches(base, end=end, epochs=self._checkpoint.epochs):
                offset, byte = batch.next_offset, batch.end
                yield batch
        except DamagedLogFile as error:
            self._note(path, error.byte, error.what)
            return
        if offset != after and after > self._checkpoint.start_offset:
            self._note(path, byte, f"the file ends with offset {offset - 1}, and {after} comes next")

    def _check_start(self, paths: list[Path]) -> None:
        assert self._checkpoint is not None
        first = base_offset_of(paths[0]) if paths else None
        if first is not None and not first <= self._checkpoint.start_offset <= self._checkpoint.next_offset:
            self._note(paths[0], 0, f"the log should begin with offset {self._checkpoint.start_offset}")

    # -- against the journal and the indexes -----------------------------------------------------------------

    def check(self, expected: Iterator[Expected], derived: Derived) -> None:
        """Read the log, and compare it with its journal and the state store. Exhausts `expected`."""
        stretches, latest_ms = dict(derived.stretches), UNKNOWN_MS
        wanted = next(expected, None)
        for batch in self.batches():
            offset = batch.header.base_offset
            while wanted is not None and wanted.offset < offset:
                wanted = next(expected, None)
            if wanted is not None and wanted.offset < batch.next_offset:
                self._compare(batch, wanted)
                wanted = next(expected, None)
            stretch = stretches.pop(offset, None)
            if stretch is not None:
                self._check_place(batch, stretch.place)
                latest_ms = stretch.latest_ms
            self._check_time(batch, min(latest_ms, derived.latest_ms.get(base_of(batch), UNKNOWN_MS)))
            self._check_span(batch, derived.spans)
        for _ in expected:
            pass
        if not self.findings:
            self._check_rest(stretches)
            for fault in derived.spans.faults():
                self._note(self.directory, None, fault)

    def _compare(self, batch: ShownBatch, wanted: Expected) -> None:
        placed = (batch.header.base_offset, batch.header.leader_epoch)
        if placed != wanted[:2] or wanted.batch[SAME_FROM:] != batch.data[SAME_FROM:]:
            self._note(
                batch.path, batch.byte, f"I1: not the batch that the journal has for offset {wanted.offset}"
            )

    def _check_place(self, batch: ShownBatch, place: Place) -> None:
        if place[1:] != (base_of(batch), batch.byte):
            self._note(batch.path, batch.byte, f"the offset index has {place[1:]} for offset {place.offset}")

    def _check_time(self, batch: ShownBatch, latest_ms: int) -> None:
        time_ms = batch.header.max_timestamp_ms
        if time_ms > latest_ms:
            self._note(
                batch.path, batch.byte, f"a message has time {time_ms}, and the index none after {latest_ms}"
            )

    def _check_span(self, batch: ShownBatch, spans: SpanCheck) -> None:
        fault = spans.fault_of(batch.header)
        if fault is not None:
            self._note(batch.path, batch.byte, fault)

    def _check_rest(self, places: Iterable[int]) -> None:
        """Check the offsets of the index where no batch begins. They must be those of deleted segments, below
        the one in which the log starts: a segment is deleted first, then its offsets.
        """
        needed = self._first_needed_base()
        lost = [offset for offset in places if offset >= needed]
        if lost:
            self._note(
                self.directory, None, f"the offset index has offset {min(lost)}, where no batch begins"
            )

    def _first_needed_base(self) -> int:
        """The base offset of the segment in which the log starts; the start, if it has no segment."""
        start_offset = self._checkpoint.start_offset if self._checkpoint is not None else 0
        bases = (base_offset_of(path) for path in self._paths) if self.end_base is not None else ()
        needed = [base for base in bases if base is not None and base <= start_offset]
        return max(needed, default=start_offset)

    # -- after the checkpoint --------------------------------------------------------------------------------

    def high_watermark(self) -> int:
        """The offset after the last sound batch, even beyond the checkpoint's end. What is below was shown.

        The journal may have lost which epochs came after the checkpoint, so they only must not fall.
        """
        base, byte, offset, epoch = self.end_base, 0, 0, 0
        if self._checkpoint is not None:
            epoch = self._checkpoint.epochs.newest
            if base is not None:
                byte, offset = self._checkpoint.log_byte, self._checkpoint.next_offset
        path = self.directory / file_name(base or 0)
        while path in self._paths:
            begun = offset
            try:
                for batch in LogFile(path, self._advance).batches(offset, begin=byte, first_epoch=epoch):
                    offset, epoch = batch.next_offset, batch.header.leader_epoch
            except DamagedLogFile:
                pass
            if offset == begun and path == self.directory / file_name(offset):
                break
            path, byte = self.directory / file_name(offset), 0
        return offset

    def _note(self, path: Path, byte: int | None, what: str) -> None:
        self.findings.append(Finding(path, byte, what))
