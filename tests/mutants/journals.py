"""Mutants of what replication needs of a journal: epochs, copies, pieces, and a bound of what is durable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from faircopy.journal import opening
from faircopy.journal.entry import Entry
from faircopy.journal.journal import Journal
from faircopy.journal.pieces import Piece, read_piece
from faircopy.journal.segments import Segments
from faircopy.journal.watermarks import Watermarks
from faircopy.storage.epoch_history import Epochs
from faircopy.storage.system import Buffer
from tests.mutants.registry import mutant, replaced


@mutant
def wait_for_no_other_replica() -> Iterator[Any]:
    """An entry is durable once this broker has synced it, whatever the others have."""
    real = Watermarks.note_synced

    def note_synced(self: Watermarks, up_to: int) -> None:
        real(self, up_to)
        self.durable = self.synced

    with replaced(Watermarks, "note_synced", note_synced):
        yield


@mutant
def copy_how_far_the_leader_has_synced() -> Iterator[Any]:
    """I9: a copy says that what is synced at the leader is synced here: a torn tail is damage then."""
    real = Journal.append_copy

    def append_copy(self: Journal, entry: Entry, payload: Buffer, payload_crc: int) -> None:
        before, self.watermarks.synced = self.watermarks.synced, entry.durable
        real(self, entry, payload, payload_crc)
        self.watermarks.synced = before

    with replaced(Journal, "append_copy", append_copy):
        yield


@mutant
def checkpoint_epochs_of_what_may_be_torn() -> Iterator[Any]:
    """I6: a checkpoint has epochs of entries that come after it, and that a crash may take."""

    def epochs_below(self: Journal, _position: int) -> Epochs:
        return self.epochs

    with replaced(Journal, "epochs_below", epochs_below):
        yield


@mutant
def take_entries_of_older_epochs() -> Iterator[Any]:
    """I8: who reads a journal does not mind that an epoch falls."""

    def epochs_with(epochs: Epochs, entry: Entry) -> Epochs:
        return (
            epochs if entry.leader_epoch < epochs.newest else epochs.note(entry.leader_epoch, entry.position)
        )

    with replaced(opening, "epochs_with", epochs_with):
        yield


@mutant
def cut_what_rotted_since_it_was_opened_raw() -> Iterator[Any]:
    """I9: what was sound when a journal was opened raw is taken for a torn tail when it is folded."""
    real = opening.Opening.__init__

    def init(self: opening.Opening, *arguments: Any, **options: Any) -> None:
        real(self, *arguments, **options)
        self._known_durable = self._start

    with replaced(opening.Opening, "__init__", init):
        yield


@mutant
def feed_what_is_not_synced() -> Iterator[Any]:
    """A follower gets what is written here, which a loss of power may take back."""

    def piece(self: Journal, position: int, bytes_max: int, *, is_cached: bool) -> Piece:
        return read_piece(self.segments, position, self.watermarks.written, bytes_max, is_cached=is_cached)

    with replaced(Journal, "piece", piece):
        yield


@mutant
def feed_what_follows_a_segment() -> Iterator[Any]:
    """A piece goes on after the end of its segment, in the space that is reserved there."""
    with replaced(Segments, "end_of", lambda self, segment, end: end):
        yield
