"""The check of one partition: its journal, folded as the broker does, and its log compared with the result.

I1  the log holds what the fold says, if the journal is still complete
I3  each undecided transaction's drafts are reachable from its head
I4  decisions exclude each other, and the other rules that the fold enforces
I6  the checkpoint agrees with the journal and the log
I7  the entries that undecided transactions need are still in the journal
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from faircopy.copier.checkpoint import Checkpoint, decode_checkpoint, restore
from faircopy.copier.fold import CopyBatch, CopyTransaction, Effect, PartitionState
from faircopy.datalog.index import decode_stretch
from faircopy.datalog.segment_times import stored_latest_ms
from faircopy.errors import FaircopyError, InvariantViolation
from faircopy.journal.reading import Recovered
from faircopy.journal.reverse_list import ReverseWalk, read_from_disk
from faircopy.journal.torn_tail import ensure_torn
from faircopy.storage.epoch_history import UNKNOWN_EPOCHS
from faircopy.storage.state_store import StateStore
from faircopy.verify.findings import Advance, Finding
from faircopy.verify.journal_epochs import EpochsFound
from faircopy.verify.journal_files import JournalFiles, check_below, finding_of, open_journal
from faircopy.verify.partition_log import Derived, Expected, PartitionLog
from faircopy.verify.span_check import SpanCheck, stored_spans


class PartitionCheck:
    """The check of one partition. `run` yields findings; then `next_offset` is the journal's, if known."""

    def __init__(
        self, identity: bytes, journal: Path, log: Path, store: StateStore, advance: Advance
    ) -> None:
        self._identity = identity
        self._journal_directory = journal
        self._log_directory = log
        self._store = store
        self._advance = advance
        self._state = PartitionState()
        self._findings: list[Finding] = []
        self.next_offset: int | None = None

    def run(self) -> Iterator[Finding]:
        """All findings."""
        files, findings = open_journal(self._journal_directory, self._identity, self._advance)
        yield from findings
        checkpoint = load_checkpoint(self._store, self._identity)
        log = PartitionLog(self._log_directory, checkpoint, self._advance)
        derived = self._derived(checkpoint)
        self._spans = derived.spans
        if findings:
            log.check(iter(()), derived)
        else:
            yield from self._check_journal(files, checkpoint)
            log.check(self._expected(files, checkpoint), derived)
        yield from self._findings
        yield from log.findings
        if not findings and not self._findings:
            self.next_offset = self._state.next_offset
            yield from self._check_end(files, log)
        files.finish()

    def _derived(self, checkpoint: Checkpoint | None) -> Derived:
        spans = SpanCheck(stored_spans(self._store, self._identity), checkpoint)
        stretches = [decode_stretch(*stored) for stored in self._store.scan("offset_index", self._identity)]
        latest_ms = dict(stored_latest_ms(self._store, self._identity))
        return Derived({stretch.place.offset: stretch for stretch in stretches}, latest_ms, spans)

    # -- the journal -----------------------------------------------------------------------------------------

    def _check_journal(self, files: JournalFiles, checkpoint: Checkpoint | None) -> Iterator[Finding]:
        """Check the part that a start does not read, and that a start finds all entries it needs (I7)."""
        position = checkpoint.position if checkpoint is not None else 0
        if not files.segments:
            if position:
                yield Finding(
                    files.directory, None, f"no segment is there, and the checkpoint is at {position}"
                )
            return
        stored = self._stored_state(checkpoint)
        needed = min(position, stored.first_needed_position)
        if files.start_position > needed:
            first = files.segments[0].path
            yield Finding(
                first, None, f"I7: the journal begins here, but is needed from position {needed} on"
            )
            return
        # If _expected folds the journal from its start, it is not read twice, unless there may be a gap.
        if files.start_position < position and (files.start_position or len(files.segments) > 1):
            # A journal that is whole is compared as it is folded.
            epochs = checkpoint.journal_epochs if checkpoint and files.start_position else UNKNOWN_EPOCHS
            yield from check_below(files, needed, position, epochs)

    def _stored_state(self, checkpoint: Checkpoint | None) -> PartitionState:
        if checkpoint is None:
            return PartitionState()
        scan = self._store.scan
        return restore(checkpoint, scan("producers", self._identity), scan("transactions", self._identity))

    def _expected(self, files: JournalFiles, checkpoint: Checkpoint | None) -> Iterator[Expected]:
        """Fold the journal: from its start if it is complete, otherwise from the checkpoint. Yields the
        batches that must be in the log, and notes faults.
        """
        position = checkpoint.position if checkpoint is not None else 0
        is_whole = files.start_position == 0
        self._state = PartitionState() if is_whole else self._stored_state(checkpoint)
        if not files.segments or files.start_position > position:
            return
        found = EpochsFound(0)
        try:
            for recovered in files.entries(0 if is_whole else position):
                found.note(recovered.entry)
                yield from self._fold(files, recovered, position)
                if checkpoint is not None and self._state.position == position:
                    self._compare_states(files, checkpoint)
                    self._compare_epochs(files, checkpoint, found)
            ensure_torn(files.segments, files.end, known_durable=position)
            self._check_lists(files)
            if is_whole:
                self._compare_spans(files)
        except FaircopyError as error:
            self._findings.append(finding_of(error, files.directory))

    def _fold(self, files: JournalFiles, recovered: Recovered, checkpoint: int) -> Iterator[Expected]:
        match self._effect_of(files, recovered, checkpoint):
            case CopyBatch() as effect:
                yield Expected(effect.base_offset, recovered.entry.leader_epoch, recovered.payload)
            case CopyTransaction() as effect:
                self._spans.folded(effect)
                yield from self._drafts(files, effect)

    def _effect_of(self, files: JournalFiles, recovered: Recovered, checkpoint: int) -> Effect | None:
        """Fold an entry. Raises DamagedJournal if it can't follow those before it."""
        entry = recovered.entry
        try:
            return self._state.fold(entry, recovered.payload)
        except Exception as error:
            if isinstance(error, InvariantViolation) and entry.end <= checkpoint:
                self._state.position = entry.end  # a broker has passed over it (`faircopy start --repair`)
                return None
            raise files.misfit(entry.position, error) from error

    def _drafts(self, files: JournalFiles, effect: CopyTransaction) -> Iterator[Expected]:
        walk = ReverseWalk(files, effect.transaction, read_from_disk)
        offset = effect.base_offset
        for draft in walk.collect(effect.head, keep_bytes=0):
            yield Expected(offset, effect.leader_epoch, walk.payload(draft.entry))
            offset += draft.entry.records
        if offset != effect.base_offset + effect.records:
            raise files.damaged(
                effect.head, f"I3: the list of {effect.transaction} does not have all of its drafts"
            )

    def _compare_states(self, files: JournalFiles, checkpoint: Checkpoint) -> None:
        found = (self._state.start_offset, self._state.next_offset)
        if found != (checkpoint.start_offset, checkpoint.next_offset):
            raise files.damaged(
                checkpoint.position,
                f"I6: the checkpoint has offsets {checkpoint.start_offset} to {checkpoint.next_offset}, and "
                f"the journal up to there {found[0]} to {found[1]}",
            )
        if self._state.epochs != checkpoint.epochs:
            raise files.damaged(
                checkpoint.position,
                f"I6: the checkpoint has leader epochs {checkpoint.epochs}, and the journal up to there "
                f"{self._state.epochs}",
            )

    def _compare_epochs(self, files: JournalFiles, checkpoint: Checkpoint, found: EpochsFound) -> None:
        if difference := found.difference(checkpoint.journal_epochs):
            raise files.damaged(checkpoint.position, difference)

    def _compare_spans(self, files: JournalFiles) -> None:
        difference = self._spans.difference()
        if difference is not None:
            self._findings.append(Finding(files.directory, None, difference))

    def _check_lists(self, files: JournalFiles) -> None:
        """Check I3 for each transaction that is undecided at the journal's end."""
        for transaction_id, transaction in self._state.undecided.items():
            walk = ReverseWalk(files, transaction_id, read_from_disk)
            drafts = walk.collect(transaction.head, keep_bytes=0)
            if len(drafts) != transaction.drafts:
                raise files.damaged(
                    transaction.head,
                    f"I3: the list of {transaction_id} has {len(drafts)} drafts, and should have "
                    f"{transaction.drafts}",
                )

    def _check_end(self, files: JournalFiles, log: PartitionLog) -> Iterator[Finding]:
        """Check that all shown messages are in the journal: otherwise its end was not torn, but durable and
        lost (I2)."""
        shown = log.high_watermark()
        if shown > self._state.next_offset:
            last = files.segments[-1] if files.segments else None
            yield Finding(
                last.path if last else files.directory,
                last.at(files.end) if last else None,
                f"the journal ends with offset {self._state.next_offset - 1}, and the log has shown offsets "
                f"up to {shown - 1} (which is as it should be only after a power cut under durability=os)",
            )


def load_checkpoint(store: StateStore, identity: bytes) -> Checkpoint | None:
    """The last checkpoint of a partition. Raises DamagedState."""
    value = store.get("checkpoints", identity)
    return decode_checkpoint(value) if value is not None else None
