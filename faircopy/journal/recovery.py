"""The recovery of a journal at a start: fold the sound entries, check what follows them, and cut it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from faircopy.errors import DoesNotFold, FaircopyError
from faircopy.journal.errors import DamagedJournal
from faircopy.journal.reading import Recovered, read_entries
from faircopy.journal.segments import Segments, sync_files
from faircopy.journal.torn_tail import ensure_torn

Fold = Callable[[Recovered], None]


class Tail(NamedTuple):
    """Where a journal ends, and whether something after the end had to be cut."""

    end: int
    was_torn: bool


def recover(
    segments: Segments,
    start: int,
    fold: Fold,
    ensure_whole: Callable[[], None],
    *,
    is_unclean: bool,
    lost_power: bool,
    passed_over: list[DamagedJournal] | None,
) -> Tail:
    """Feed the sound entries from `start` on to `fold`, and cut a torn tail. Blocks.

    `start` is the checkpoint's position, so everything before it is known to be durable. Entries are fsynced
    before they are folded. `ensure_whole` is called before the cut, and may raise if more was durable. An
    entry that does not fold goes to `passed_over`; if that is None, it is damage. Raises DamagedJournal,
    StorageFailure.
    """
    ensure_reaches(segments, start)
    if not segments:
        ensure_whole()
        return Tail(start, was_torn=False)
    if is_unclean:
        segments.renew(start)
    end = fold_entries(segments, start, fold, passed_over)
    was_torn = not segments.is_blank_from(end)
    if was_torn:
        ensure_torn(segments, end, known_durable=start, lost_power=lost_power)
    ensure_whole()
    if was_torn:
        segments.cut(end)
    return Tail(end, was_torn)


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


def fold_entries(segments: Segments, start: int, fold: Fold, passed_over: list[DamagedJournal] | None) -> int:
    """Fold the sound entries from `start` on; return where they end."""
    end = start
    for recovered in read_entries(segments, start):
        if end == start:
            sync_what_was_found(segments)
        fold_one(segments, fold, recovered, passed_over)
        end = recovered.entry.end
    return end


def sync_what_was_found(segments: Segments) -> None:
    """fsync the entries that were found, since they may be only in the page cache. They must be durable
    before their effects are in a log (I2). Otherwise the effects could survive a loss of power that the
    entries do not, and the next start would conclude that they had been shown.

    The directory needs no fsync: a segment's name is durable before there is an entry in it.
    """
    sync_files([segment.opened for segment in segments])


def fold_one(
    segments: Segments, fold: Fold, recovered: Recovered, passed_over: list[DamagedJournal] | None
) -> None:
    """Fold one entry. A sound one that can't follow the ones before it stops this journal, not the start."""
    try:
        fold(recovered)
    except (FaircopyError, OSError):
        raise
    except Exception as error:
        found = misfit(segments, recovered.entry.position, error)
        if passed_over is None or not isinstance(error, DoesNotFold):
            raise found from error
        passed_over.append(found)


def misfit(segments: Segments, position: int, error: Exception) -> DamagedJournal:
    """The error for a sound entry that makes no sense here."""
    holder = segments.holding(position)
    way_out = "restore the file from a backup or a replica"
    if isinstance(error, DoesNotFold):
        way_out += ", or pass over the entry by `faircopy start --repair`, if an earlier version wrote it"
    return DamagedJournal(
        f"{holder.path} holds an entry at byte {holder.at(position)} (journal position {position}) that "
        f"can't follow those before it ({error!r}): {way_out}",
        holder.path,
        holder.at(position),
    )
