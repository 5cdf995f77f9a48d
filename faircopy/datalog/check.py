"""Checks old log data before it is served: each batch's CRC, and contiguous offsets. On any thread."""

from __future__ import annotations

from faircopy.datalog.checked import CheckedRange
from faircopy.datalog.index import Place
from faircopy.datalog.read import ReadPlan, damaged, read_from_disk
from faircopy.datalog.segment import LogSegment
from faircopy.wire.batch import LENGTH_OVERHEAD_BYTES, PLACE, BatchError, check_logged

PIECE_BYTES = 1 << 20


def needs_check(plan: ReadPlan, max_bytes: int) -> bool:
    """Whether a reader of `max_bytes` may get unchecked bytes. Costs nothing if all are new."""
    near = plan.near.byte
    checked = plan.segment.checked
    return near < checked.old_bytes and not checked.covers(near, near + PIECE_BYTES + max_bytes)


def check_up_to(plan: ReadPlan, end: int) -> None:
    """Check the segment's batches from the plan's near place up to byte `end`, except those checked before.

    Blocks. Raises DamagedLog, StorageFailure.
    """
    checked = plan.segment.checked
    end = min(end, checked.old_bytes)
    place = plan.near
    while place.byte < end:
        known = checked.range_at(place.byte)
        if known is not None:
            place = Place(known.end_offset, place.segment_base, known.end)
        else:
            following = check_piece(plan.segment, place)
            checked.add(CheckedRange(place.byte, following.byte, following.offset))
            place = following


def check_piece(segment: LogSegment, place: Place) -> Place:
    """Check some of the old batches from a place on, at least one. Return the place after them."""
    left = segment.checked.old_bytes - place.byte
    piece = memoryview(read_from_disk(segment, min(PIECE_BYTES, left), place.byte))
    first = batch_bytes(segment, place, piece, left)
    if first > len(piece):
        piece = memoryview(read_from_disk(segment, first, place.byte))
    at, size, epoch = 0, first, 0
    while at + size <= len(piece):
        try:
            allowed = segment.epochs.allowed_at(place.offset, epoch)
            header = check_logged(piece[at : at + size], place.offset, allowed)
        except BatchError as error:
            raise damaged(segment, place, f"is damaged ({error})") from None
        at, epoch = at + size, header.leader_epoch
        place = Place(header.last_offset + 1, place.segment_base, place.byte + size)
        if len(piece) - at < PLACE.size:
            break
        size = batch_bytes(segment, place, piece[at:], left - at)
    return place


def batch_bytes(segment: LogSegment, place: Place, data: memoryview, left: int) -> int:
    """The size of the batch at the start of `data`; `left` bytes of the file remain. Raises DamagedLog."""
    if len(data) < PLACE.size:
        raise damaged(segment, place, "is cut short")
    size: int = PLACE.unpack_from(data)[1] + LENGTH_OVERHEAD_BYTES
    if not 0 < size <= left:
        raise damaged(segment, place, f"is damaged (a batch of {size} bytes can't be there)")
    return size
