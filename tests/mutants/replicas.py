"""Mutants that answer, or go on, before other replicas have what that rests on. On one broker, each is right.

`written here` is a tick after it was appended, as for all that is small.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any

from faircopy.groups.offsets_journals import OffsetsJournals
from faircopy.journal.group_commit import GroupCommit
from faircopy.journal.space_wait import SpaceWait
from faircopy.journal.watermarks import Watermarks
from faircopy.partition.partition import Partition
from faircopy.transactions.coordinator import TransactionCoordinator
from faircopy.transactions.joint_transactions import JointTransactions
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.unwritten import UnwrittenTransactions
from tests.mutants.registry import mutant, replaced


@mutant
def keep_what_is_written_here() -> Iterator[Any]:
    """What is written here counts as kept, whatever the other replicas have."""
    real = Watermarks.note_written

    def note_written(self: Watermarks, up_to: int) -> None:
        real(self, up_to)
        self.kept = self.written

    with replaced(Watermarks, "note_written", note_written):
        yield


@mutant
def keep_only_what_somebody_else_syncs() -> Iterator[Any]:
    """Who waits for other replicas to have drafts does not ask for the fsync without which none gets them."""

    def when_kept(self: GroupCommit, callback: Any) -> None:
        up_to = self._marks.appended
        if self._marks.kept >= up_to or self._is_abandoned:
            callback()
        else:
            self._when_kept.append((up_to, callback))

    with replaced(GroupCommit, "when_kept", when_kept):
        yield


@mutant
def ack_drafts_that_others_lack() -> Iterator[Any]:
    """A draft is acked when it is written here."""

    def when_written(self: Partition, transaction: Any, done: Any) -> None:
        self.journal._loop.call_soon(done)

    with replaced(Partition, "_when_draft_is_safe", when_written):
        yield


@mutant
def ack_drafts_of_a_transaction_that_others_lack() -> Iterator[Any]:
    """A1: a draft does not wait for the BEGIN and the ADD of its transaction."""
    with replaced(UnwrittenTransactions, "once_written", lambda self, transaction, done: done):
        yield


@mutant
def add_partitions_before_others_know() -> Iterator[Any]:
    """A1: AddPartitionsToTxn is answered when BEGIN and ADD are written here."""
    with impatient(TransactionCoordinator, "add_partitions"):
        yield


@mutant
def make_members_before_others_know() -> Iterator[Any]:
    """A1: JoinTransaction is answered when JOIN is written here."""
    with impatient(JointTransactions, "join"):
        yield


@mutant
def say_that_it_is_aborted_before_others_know() -> Iterator[Any]:
    """A3: the abort of a transaction is acked when it is written here."""
    with impatient(TransactionCoordinator, "end"):
        yield


@mutant
def say_that_a_key_is_aborted_before_others_know() -> Iterator[Any]:
    """A3: the same, for what the members of a joint group have written."""
    with impatient(JointTransactions, "abort"):
        yield


@mutant
def discard_before_others_know() -> Iterator[Any]:
    """A3: participants hear of an abort when it is written here."""

    def when_written(self: MetadataJournal, callback: Any, *, is_durable: bool) -> None:
        self.journal._loop.call_soon(callback)

    with replaced(MetadataJournal, "when_safe", when_written):
        yield


@mutant
def let_members_leave_before_others_know() -> Iterator[Any]:
    """B12: LeaveGroup is answered at once."""

    async def replicated(self: OffsetsJournals, group: str) -> None:
        pass

    with replaced(OffsetsJournals, "replicated", replicated):
        yield


@mutant
def take_what_is_new_without_replicas() -> Iterator[Any]:
    """Whatever is new is appended, although replicas are missing, and its client waits."""
    with replaced(SpaceWait, "ensure_replicas", lambda self: None):
        yield


@mutant
def checkpoint_what_others_lack() -> Iterator[Any]:
    """A12: a checkpoint has what is synced here, and what another leader may cut."""

    async def sync(self: GroupCommit) -> None:
        await self._sync_now(self._marks.written)

    with replaced(GroupCommit, "sync", sync):
        yield


def impatient(owner: Any, name: str) -> contextlib.AbstractContextManager[Any]:
    """A method of a coordinator that waits for no other replica."""
    real, real_safe = getattr(owner, name), MetadataJournal.safe
    is_impatient = contextvars.ContextVar("is_impatient", default=False)

    async def safe(self: MetadataJournal, *, is_durable: bool) -> None:
        if is_impatient.get():
            await asyncio.sleep(0)
        else:
            await real_safe(self, is_durable=is_durable)

    async def hurried(*arguments: Any, **options: Any) -> Any:
        is_impatient.set(True)
        return await real(*arguments, **options)

    both = contextlib.ExitStack()
    both.enter_context(replaced(MetadataJournal, "safe", safe))
    both.enter_context(replaced(owner, name, hurried))
    return both
