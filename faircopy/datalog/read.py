"""Reading a data log on any thread, by a plan that was made on the event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from faircopy.datalog.index import Place
from faircopy.datalog.segment import LogSegment
from faircopy.errors import FaircopyError
from faircopy.storage.file import FileRange
from faircopy.wire.batch import HEADER_BYTES, LENGTH_OVERHEAD_BYTES, PLACE, BatchHeader, read_header

WALK_BYTES = 64 << 10
ReadAt = Callable[[LogSegment, int, int], bytes]


class DamagedLog(FaircopyError):
    """A data log does not hold what its checkpoint or index says."""


class ReadPlan(NamedTuple):
    """A place in a segment at or before `offset`, and how many bytes of the segment are visible."""

    segment: LogSegment
    near: Place
    offset: int
    visible_bytes: int

    @property
    def available_bytes(self) -> int:
        """Roughly how many bytes can be read from this segment."""
        return self.visible_bytes - self.near.byte


def read_from_disk(segment: LogSegment, size: int, byte: int) -> bytes:
    """Read, and wait for the disk if necessary."""
    return segment.file.read(size, byte)


def read_from_cache(segment: LogSegment, size: int, byte: int) -> bytes:
    """Read from the page cache. Raises NotCached."""
    return segment.file.read_cached(size, byte)


def read_batches(plan: ReadPlan, max_bytes: int, read_at: ReadAt, *, may_exceed: bool = True) -> bytes:
    """Batches from the one that holds the plan's offset on. The first is whole, the last may be cut. If the
    first is larger than `max_bytes`, it comes alone if it `may_exceed` that, and otherwise nothing does.

    Raises DamagedLog, StorageFailure; NotCached as `read_at` does.
    """
    place = locate(plan, read_at)
    data = read_at(
        plan.segment, min(max(max_bytes, HEADER_BYTES), plan.visible_bytes - place.byte), place.byte
    )
    first = first_batch_bytes(plan, place, data)
    if first > max_bytes:
        return read_at(plan.segment, first, place.byte) if may_exceed else b""
    return data


def find_batches(plan: ReadPlan, max_bytes: int, read_at: ReadAt, *, may_exceed: bool = True) -> FileRange:
    """The file range that `read_batches` would read. Raises the same errors."""
    place = locate(plan, read_at)
    size = min(max_bytes, plan.visible_bytes - place.byte)
    first = first_batch_bytes(plan, place, read_at(plan.segment, PLACE.size, place.byte))
    if first > size:
        size = first if may_exceed else 0
    return FileRange(plan.segment.file, place.byte, size)


def first_batch_bytes(plan: ReadPlan, place: Place, data: bytes) -> int:
    """The size of the batch at a place, given `data` read from there. Raises DamagedLog."""
    if len(data) < PLACE.size:
        raise damaged(plan.segment, place, "is cut short")
    size: int = PLACE.unpack_from(data)[1] + LENGTH_OVERHEAD_BYTES
    if not HEADER_BYTES <= size <= plan.visible_bytes - place.byte:
        raise damaged(plan.segment, place, f"is damaged (a batch of {size} bytes can't be there)")
    return size


def locate(plan: ReadPlan, read_at: ReadAt) -> Place:
    """The place of the batch that holds the plan's offset."""
    if plan.near.offset == plan.offset:
        return plan.near
    for place, header in walk(plan, read_at):
        if plan.offset <= header.last_offset:
            return place
    raise DamagedLog(
        f"{plan.segment.path} ends before offset {plan.offset}: restore it from a backup or a replica"
    )


def walk(plan: ReadPlan, read_at: ReadAt) -> Iterator[tuple[Place, BatchHeader]]:
    """The batches of a segment from the plan's near place on, by their headers. Raises DamagedLog."""
    place, window, window_byte = plan.near, b"", plan.near.byte
    while place.byte < plan.visible_bytes:
        at = place.byte - window_byte
        if at + HEADER_BYTES > len(window):
            window = read_at(plan.segment, min(WALK_BYTES, plan.visible_bytes - place.byte), place.byte)
            window_byte, at = place.byte, 0
        if len(window) - at < HEADER_BYTES:
            raise damaged(plan.segment, place, "is cut short")
        header = read_header(window, at)
        if header.base_offset != place.offset or header.length < HEADER_BYTES - LENGTH_OVERHEAD_BYTES:
            raise damaged(plan.segment, place, "does not hold that offset there")
        yield place, header
        place = Place(header.last_offset + 1, place.segment_base, place.byte + header.size_bytes)


def damaged(segment: LogSegment, place: Place, what: str) -> DamagedLog:
    """The error for a segment that is damaged at a place; `what` is wrong with it."""
    return DamagedLog(
        f"{segment.path} {what}: byte {place.byte}, offset {place.offset}. Restore it from a "
        f"backup or a replica"
    )
