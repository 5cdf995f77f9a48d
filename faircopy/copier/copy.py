"""The local copy of one effect, as a generator of steps. Live operation and recovery share it.

A step reads drafts from the journal, or writes batches to the log. The caller decides where each step runs:
on the event loop, on a disk thread, or during startup, before the broker serves.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from faircopy.copier.fold import CopyTransaction
from faircopy.datalog.log import PlacedBatch
from faircopy.errors import invariant
from faircopy.journal.recent import Draft
from faircopy.journal.reverse_list import HasSegments, ReadBytes, ReverseWalk

PIECE_BYTES = 4 << 20
KEPT_PAYLOAD_BYTES = 8 << 20

PlaceBatch = Callable[[memoryview, int, int], PlacedBatch]
"""`place(batch, base offset, leader epoch)` gives a batch its place in the log. Call it on the event loop."""


class ReadDrafts(NamedTuple):
    """Call `work`, which may wait for the disk, and send back what it returns."""

    work: Callable[[], list[Draft]]


class WriteBatches(NamedTuple):
    """Write these batches to their places, then make them visible."""

    placed: list[PlacedBatch]


Step = ReadDrafts | WriteBatches
Steps = Generator[Step, list[Draft] | None, None]


def copy_transaction(
    journal: HasSegments, effect: CopyTransaction, recent: list[Draft], read: ReadBytes, place: PlaceBatch
) -> Steps:
    """Copy a transaction's drafts, first to last, in runs of a few MiB. `recent` holds those of the last
    drafts that are still in memory; `read` reads the others. Of most transactions, all are in memory.
    """
    if len(recent) == effect.drafts and effect.size <= PIECE_BYTES:
        yield WriteBatches(placed_in_order(recent, effect.base_offset, effect.leader_epoch, place))
        return
    walk = ReverseWalk(journal, effect.transaction, read)
    drafts = yield ReadDrafts(partial(all_drafts, walk, effect, recent))
    base_offset = effect.base_offset
    for piece in pieces(drafts or []):
        loaded: list[Draft] | None = piece
        if any(draft.payload is None for draft in piece):
            loaded = yield ReadDrafts(partial(with_payloads, walk, piece))
        yield WriteBatches(placed_in_order(loaded or [], base_offset, effect.leader_epoch, place))
        base_offset += sum(draft.entry.records for draft in piece)


def copy_batch(batch: memoryview, base_offset: int, leader_epoch: int, place: PlaceBatch) -> Steps:
    """Copy one plain batch."""
    yield WriteBatches([place(batch, base_offset, leader_epoch)])


def following(steps: Steps, drafts: list[Draft] | None) -> Step | None:
    """The next step, given what the last ReadDrafts returned; None at the end."""
    try:
        return steps.send(drafts)
    except StopIteration:
        return None


def write_placed(placed: list[PlacedBatch]) -> None:
    """Write batches to their places, with one write call per segment. Blocks."""
    first = 0
    for number in range(1, len(placed) + 1):
        if number == len(placed) or placed[number].segment is not placed[first].segment:
            buffers = [buffer for batch in placed[first:number] for buffer in batch.buffers]
            placed[first].segment.file.write(buffers, placed[first].byte)
            first = number


def all_drafts(walk: ReverseWalk, effect: CopyTransaction, recent: list[Draft]) -> list[Draft]:
    """The transaction's drafts, first to last. Those before `recent` are read from the journal. Blocks."""
    head = recent[0].entry.previous if recent else effect.head
    drafts = walk.collect(head, KEPT_PAYLOAD_BYTES) + recent
    invariant(len(drafts) == effect.drafts, "I3: every draft of a transaction is on its list")
    return drafts


def with_payloads(walk: ReverseWalk, piece: Iterable[Draft]) -> list[Draft]:
    """The drafts of a piece. Payloads that the first pass did not keep are read again. Blocks."""
    return [
        draft if draft.payload is not None else Draft(draft.entry, walk.payload(draft.entry))
        for draft in piece
    ]


def placed_in_order(
    drafts: Iterable[Draft], base_offset: int, leader_epoch: int, place: PlaceBatch
) -> list[PlacedBatch]:
    """Place loaded drafts one after another from `base_offset` on, all under one leader epoch."""
    placed = []
    for draft in drafts:
        assert draft.payload is not None
        placed.append(place(draft.payload, base_offset, leader_epoch))
        base_offset += draft.entry.records
    return placed


def pieces(drafts: list[Draft]) -> Iterator[list[Draft]]:
    """Drafts in runs of a few MiB, in order."""
    piece: list[Draft] = []
    size = 0
    for draft in drafts:
        piece.append(draft)
        size += draft.entry.payload_bytes
        if size >= PIECE_BYTES:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece
