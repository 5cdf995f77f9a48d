"""The check of journals without a topic: the catalogue, of transactions and of group offsets. They are folded
as in the broker.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

from faircopy.catalogue.founding import is_founded, without_catalogue
from faircopy.catalogue.journal import (
    CATALOGUE_IDENTITY,
    TABLE,
    CatalogueJournal,
    change_in,
    checkpointed,
)
from faircopy.copier.checkpoint import decode_checkpoint, restore
from faircopy.copier.fold import PartitionState
from faircopy.errors import DoesNotFold, FaircopyError
from faircopy.groups.group_offsets import GroupOffsets
from faircopy.journal.checkpoint import JournalCheckpoint, decode_journal_checkpoint
from faircopy.journal.journal import Journal
from faircopy.journal.reading import Recovered
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.epoch_history import NO_EPOCHS
from faircopy.storage.sealed import DamagedRecord
from faircopy.storage.state_store import StateStore
from faircopy.storage.store_check import FILE
from faircopy.storage.versioned_map import SortedEntries, told
from faircopy.transactions.metadata_journal import MetadataJournal, journal_identity
from faircopy.verify.findings import Advance, Finding
from faircopy.verify.journal_files import JournalFiles, check_below, finding_of, open_journal


class CatalogueCheck:
    """The catalogue's journal. Once it has run, `catalogue` has what could be read."""

    def __init__(self, directory: Path, store: StateStore, advance: Advance) -> None:
        self._directory = directory
        self._store = store
        self._files, self._findings = open_journal(directory, CATALOGUE_IDENTITY, advance)
        # It only reads, so the parts that write a Journal are not needed.
        self.catalogue = CatalogueJournal(cast(Journal, self._files), store, cast(DiskPool, None))
        self.is_sound = False

    def run(self) -> Iterator[Finding]:
        """All findings."""
        findings = [*self._findings]
        if not findings:
            checkpoint = decode_journal_checkpoint(self._store.get("checkpoints", CATALOGUE_IDENTITY))
            findings += check_folded(self._files, checkpoint.position, checkpoint, self.catalogue.open)
        if not findings:
            findings += [*self._check_founded(), *self._check_checkpoint(checkpoint.position)]
        self._files.finish()
        self.is_sound = not findings
        yield from findings

    def _check_founded(self) -> Iterator[Finding]:
        """The catalogue is lost if it is empty, and something else is there."""
        journals = self._directory.parents[1]
        there = without_catalogue(journals, journals.parent / "log")
        if there and not is_founded(self.catalogue):
            yield Finding(self._directory, None, f"the catalogue is empty, and {there[0]} is there")

    def _check_checkpoint(self, position: int) -> Iterator[Finding]:
        """Compare the checkpoint with the fold up to there, if the journal still begins at 0 (I6)."""
        if not position or self._files.start_position:
            return
        expected, found = SortedEntries(), checkpointed(self._store)
        # The bytes have been counted already.
        files = JournalFiles(self._files.segments)
        for recovered in files.entries(0):
            if recovered.entry.end > position:
                break
            # What does not fold was passed over, as --repair says.
            with contextlib.suppress(DoesNotFold):
                expected.apply(change_in(recovered, expected).changes, recovered.entry.position)
        for key in sorted({*expected, *found}):
            if expected.get(key) != found.get(key):
                yield Finding(
                    self._directory.parents[2] / "state.lmdb" / FILE,
                    None,
                    f"I6: in table {TABLE}, {key} (version {told(found.version(key))}) differs from what the "
                    f"catalogue's journal says up to position {position} "
                    f"(version {told(expected.version(key))})",
                )


def check_metadata_journal(
    number: int, directory: Path, store: StateStore, advance: Advance
) -> Iterator[Finding]:
    """Check J-`number`, in `directory`: its entries, and the transitions that they make."""
    identity = journal_identity(number)
    files, findings = open_journal(directory, identity, advance)
    yield from findings
    if not findings:
        checkpoint = decode_journal_checkpoint(store.get("checkpoints", identity))
        # It only reads, so the parts that write a Journal are not needed.
        journal = MetadataJournal(number, cast(Journal, files), store, cast(DiskPool, None))
        yield from check_folded(files, checkpoint.position, checkpoint, journal.open)
    files.finish()


def check_folded(
    files: JournalFiles, needed: int, checkpoint: JournalCheckpoint, fold: Callable[[], None]
) -> Iterator[Finding]:
    """Check the entries below a checkpoint, which are needed from `needed` on, and feed the rest to `fold`.
    Raises DamagedRecord.
    """
    if files.segments and files.start_position < checkpoint.position:
        yield from check_below(files, needed, *checkpoint)
    try:
        fold()
    except DamagedRecord:
        raise  # the check of the state store has named it, with its byte
    except FaircopyError as error:
        yield finding_of(error, files.directory)


class OffsetsCheck:
    """One journal of group offsets."""

    def __init__(self, identity: bytes, directory: Path, store: StateStore, advance: Advance) -> None:
        self._identity = identity
        self._store = store
        self._files, self._findings = open_journal(directory, identity, advance)
        self._table = GroupOffsets(identity, cast(Journal, self._files), store)
        self._state = PartitionState()
        self._epochs = NO_EPOCHS

    def run(self) -> Iterator[Finding]:
        """All findings."""
        yield from self._findings
        if not self._findings:
            value = self._store.get("checkpoints", self._identity)
            checkpoint = decode_journal_checkpoint(value)
            if value is not None:
                scan = self._store.scan
                self._state = restore(
                    decode_checkpoint(value),
                    scan("producers", self._identity),
                    scan("transactions", self._identity),
                )
            needed = min(checkpoint.position, self._state.first_needed_position)
            self._epochs = checkpoint.epochs
            yield from check_folded(self._files, needed, checkpoint, self._recover)
        self._files.finish()

    def _recover(self) -> None:
        self._table.load()
        opening = self._files.open(self._state.position, self._epochs)
        for recovered in opening.entries():
            try:
                self._fold(recovered)
            except Exception as error:
                opening.refuse(recovered.entry, error)
        opening.judge_end()
        for transaction_id, transaction in self._state.undecided.items():
            if transaction.drafts:
                self._table.recover_open(transaction_id, transaction.head)

    def _fold(self, recovered: Recovered) -> None:
        effect = self._state.fold(recovered.entry, recovered.payload, has_batches=False)
        if effect is not None:
            self._table.push(effect, recovered.payload)
