"""Faircopy with one rule broken, each in another way. Simulation or tests must notice every one.

A mutant changes the product in this process, as long as it is applied, and says which invariant or promise it breaks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from faircopy.broker.transactions.coordinator import TransactionCoordinator
from faircopy.copier import fold, log_copier, partition
from faircopy.copier.log_copier import LogCopier
from faircopy.copier.partition import Partition
from faircopy.datalog import log as data_log
from faircopy.journal import journal, recovery, segment
from faircopy.journal.entry import NOWHERE
from faircopy.journal.journal import Journal

Mutant = Callable[[], contextlib.AbstractContextManager[Any]]
MUTANTS: dict[str, Mutant] = {}


def mutant(make: Callable[[], Iterator[Any]]) -> Callable[[], Iterator[Any]]:
    """Register a mutant by its name."""
    MUTANTS[make.__name__] = contextlib.contextmanager(make)
    return make


def replaced(owner: Any, name: str, new: Any) -> contextlib.AbstractContextManager[Any]:
    return mock.patch.object(owner, name, new)


# -- what is durable ------------------------------------------------------------------------------------------------


@mutant
def skip_the_journals_fsync() -> Iterator[Any]:
    """I2: entries count as durable when they are written."""
    with replaced(journal, "sync_segments", lambda segments: None):
        yield


@mutant
def release_before_durable() -> Iterator[Any]:
    """I2: effects are released at once."""
    with replaced(Journal, "when_durable", lambda self, callback: self._loop.call_soon(callback)):
        yield


@mutant
def forget_the_directory_fsync() -> Iterator[Any]:
    """A new segment's name is not made durable."""
    with replaced(segment, "sync_directory", lambda path: None):
        yield


@mutant
def write_the_segment_header_without_fsync() -> Iterator[Any]:
    """A segment's name appears before its header is durable."""
    real = segment.File.sync

    def sync(file: segment.File) -> None:
        if file.path.suffix != ".tmp":
            real(file)

    with replaced(segment.File, "sync", sync):
        yield


@mutant
def checkpoint_without_syncing_the_log() -> Iterator[Any]:
    """I6: a checkpoint counts on a data log that is not fsynced."""

    async def sync(self: LogCopier) -> None:
        self.log.take_unsynced()

    with replaced(LogCopier, "sync", sync):
        yield


@mutant
def go_on_after_a_failed_fsync() -> Iterator[Any]:
    """I10: an fsync that failed is tried again, and the second one succeeds."""

    def sync_segments(segments: list[segment.Segment]) -> None:
        for each in segments:
            with contextlib.suppress(Exception):
                each.opened.sync()

    with replaced(journal, "sync_segments", sync_segments):
        yield


# -- transactions ---------------------------------------------------------------------------------------------------


@mutant
def ack_without_the_participants() -> Iterator[Any]:
    """I5: a commit waits for PREPARE_COMMIT only."""
    with replaced(TransactionCoordinator, "_promising", lambda self, transaction: []):
        yield


@mutant
def apply_twice() -> Iterator[Any]:
    """I4: an APPLY of what is applied takes effect again."""
    real = fold.PartitionState.fold_apply

    def fold_apply(self: fold.PartitionState, entry: Any, finished: int) -> Any:
        known = self.transactions.get(entry.transaction)
        if known is not None and known.standing is fold.Standing.APPLIED:
            self.transactions.pop(entry.transaction)
        return real(self, entry, finished)

    real_apply = Partition.apply

    def apply(self: Partition, transaction: Any, finished: int, done: Any) -> None:
        real_apply(self, transaction, finished, lambda: None)
        # A second copy of what was just copied.
        known = self.state.transactions.get(transaction)
        if known is not None:
            self.state.next_offset += 0
        real_apply(self, transaction, finished, done)

    with replaced(fold.PartitionState, "fold_apply", fold_apply), replaced(Partition, "apply", apply):
        yield


@mutant
def drop_the_first_draft() -> Iterator[Any]:
    """I3: the reverse list is not walked to its begin."""
    real = log_copier.LogCopier._walk

    def walk(self: LogCopier, *arguments: Any) -> Any:
        drafts = real(self, *arguments)
        return drafts[1:] + drafts[:1] if len(drafts) > 1 else drafts

    with replaced(LogCopier, "_walk", walk):
        yield


@mutant
def drop_previous() -> Iterator[Any]:
    """I3: a draft does not know the one before it."""
    real = Journal.append

    def append(self: Journal, kind: Any, payload: Any = b"", **named: Any) -> Any:
        if kind == partition.Kind.DRAFT:
            named["previous"] = NOWHERE
        return real(self, kind, payload, **named)

    with replaced(Journal, "append", append):
        yield


@mutant
def believe_every_duplicate_is_new() -> Iterator[Any]:
    """A batch that a client sends again is appended again (KIP-98)."""
    with replaced(fold.Producer, "find_duplicate", lambda self, header: None):
        yield


@mutant
def cut_damage_like_a_torn_tail() -> Iterator[Any]:
    """I9: whatever does not hold is cut."""
    with replaced(journal, "ensure_torn", lambda *arguments, **named: None):
        yield


@mutant
def leave_the_torn_tail() -> Iterator[Any]:
    """A torn tail is not cut, so that old bytes may be taken for entries later."""

    def cut(self: Journal, end: int) -> None:
        pass

    with replaced(Journal, "_cut", cut):
        yield


@mutant
def leave_the_log_behind_its_checkpoint() -> Iterator[Any]:
    """I6: recovery does not cut the data log at the checkpoint's end."""
    with replaced(data_log.DataLog, "_cut", lambda self, end: None):
        yield


@mutant
def reclaim_too_much() -> Iterator[Any]:
    """I7: segments with drafts of open transactions are deleted."""
    with replaced(fold.PartitionState, "first_needed_position", property(lambda self: self.position)):
        yield


@mutant
def skip_the_crc() -> Iterator[Any]:
    """I9: entries are not checked."""
    with replaced(recovery, "check", lambda *arguments: None):
        yield
