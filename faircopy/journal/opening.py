"""The opening of a journal, in steps that whoever folds it takes:

    opening = journal.open(start)                 find the segments, which must reach `start`, the checkpoint
    for recovered in opening.entries():           its sound entries, in order: the caller folds them, and
        ...                                       refuses (`opening.refuse`) what does not fold
    opening.judge_end()                           what follows is nothing, or a torn tail, or damage (I9)
    journal.ensure_leads(opening)                 the epoch that is about to lead has never been used (I8)
    journal.accept(opening)                       cut a torn tail, and be ready to append

Nothing is cut before the last step, so a journal that turns out to be damaged is still as it was found.
"""

from __future__ import annotations

from collections.abc import Iterator

from faircopy.errors import DoesNotFold, FaircopyError, InvariantViolation
from faircopy.journal.entry import Entry
from faircopy.journal.errors import DamagedJournal
from faircopy.journal.reading import Recovered, read_entries
from faircopy.journal.segments import Segments, sync_files
from faircopy.journal.torn_tail import damaged, ensure_torn
from faircopy.storage.epoch_history import Epochs


class Opening:
    """One opening of a journal whose segments were found. All methods block.

    `end` is the position after the last entry that was taken, and `epochs` the leader epochs up to there.
    `is_torn` says whether something after it must be cut. Entries below `known_durable` must be sound. An
    entry that does not fold goes to `passed_over`; if that is None, it is damage.
    """

    def __init__(
        self,
        segments: Segments,
        start: int,
        epochs: Epochs,
        known_durable: int,
        *,
        lost_power: bool,
        passed_over: list[DamagedJournal] | None,
    ) -> None:
        self.end = start
        self.epochs = epochs
        self.is_torn = False
        self._segments = segments
        self._start = start
        self._known_durable = known_durable
        self._lost_power = lost_power
        self._passed_over = passed_over

    def entries(self) -> Iterator[Recovered]:
        """The sound entries, up to the first place without one. They are fsynced before the first is told.

        Raises DamagedJournal if an entry is of an older epoch than the one before it; StorageFailure.
        """
        newest = self.epochs.newest
        for recovered in read_entries(self._segments, self._start):
            if self.end == self._start:
                sync_what_was_found(self._segments)
            entry = recovered.entry
            if entry.leader_epoch == newest or self._begins_epoch(entry):
                newest = entry.leader_epoch
                yield recovered
            self.end = entry.end

    def _begins_epoch(self, entry: Entry) -> bool:
        """Note that another leader has written, unless it is an older one: such an entry is refused."""
        try:
            self.epochs = epochs_with(self.epochs, entry)
        except DoesNotFold as error:
            self.refuse(entry, error)
            return False
        return True

    def refuse(self, entry: Entry, error: Exception) -> None:
        """Pass over a sound entry whose folding raised `error`, if it is one that can't follow those before
        it, and if that is wanted. Otherwise raise DamagedJournal, which stops this journal, not the start; or
        the error itself, if the disk or another file is to blame.
        """
        if isinstance(error, (FaircopyError, OSError)):
            raise error
        found = misfit(self._segments, entry.position, error)
        if self._passed_over is None or not isinstance(error, DoesNotFold):
            raise found from error
        self._passed_over.append(found)

    def judge_end(self) -> None:
        """Raise DamagedJournal unless nothing follows the entries, or a torn tail (I9). Raises
        StorageFailure.
        """
        if self.end < self._known_durable:
            what = f", below position {self._known_durable}, up to which it was sound: restore"
            raise damaged(self._segments.holding(self.end), self.end, what)
        self.is_torn = bool(self._segments) and not self._segments.is_blank_from(self.end)
        if self.is_torn:
            ensure_torn(self._segments, self.end, self._known_durable, lost_power=self._lost_power)

    def cut(self) -> None:
        """Remove a torn tail, durably. Raises StorageFailure."""
        if self.is_torn:
            self._segments.cut(self.end)


def epochs_with(epochs: Epochs, entry: Entry) -> Epochs:
    """The history with one more entry. Raises DoesNotFold if it is of an older epoch than the one before."""
    try:
        return epochs.note(entry.leader_epoch, entry.position)
    except InvariantViolation as error:
        raise DoesNotFold(f"leader epoch {entry.leader_epoch} after {epochs.newest}") from error


def ensure_reaches(segments: Segments, checkpoint: int) -> None:
    """Raise DamagedJournal unless the files reach to the checkpoint."""
    where = segments.directory
    if not segments:
        if checkpoint:
            raise DamagedJournal(f"{where} has no segments, but was checkpointed at {checkpoint}: restore it")
        return
    if segments[0].base > checkpoint:
        raise DamagedJournal(
            f"{where} begins at {segments[0].base}, after its checkpoint at {checkpoint}: restore it"
        )
    holder = segments.holding(checkpoint)
    if holder.allocated < holder.at(checkpoint):
        raise DamagedJournal(
            f"{holder.path} has {holder.allocated} bytes, and was checkpointed at byte "
            f"{holder.at(checkpoint)}: restore it from a backup or a replica"
        )


def sync_what_was_found(segments: Segments) -> None:
    """fsync the entries that were found, since they may be only in the page cache. They must be durable
    before their effects are in a log (I2). Otherwise the effects could survive a loss of power that the
    entries do not, and the next start would conclude that they had been shown.

    The directory needs no fsync: a segment's name is durable before there is an entry in it, also if the
    process that made it was killed (`DataDirectory.sync_names`).
    """
    sync_files([segment.opened for segment in segments])


def misfit(segments: Segments, position: int, error: Exception) -> DamagedJournal:
    """The error for a sound entry that makes no sense here."""
    holder = segments.holding(position)
    way_out = "restore the file from a backup or a replica"
    if isinstance(error, DoesNotFold):
        way_out += ", or pass over the entry by `faircopy start --repair`"
    return DamagedJournal(
        f"{holder.path} holds an entry at byte {holder.at(position)} (journal position {position}) that "
        f"can't follow those before it ({error!r}): {way_out}",
        holder.path,
        holder.at(position),
    )
