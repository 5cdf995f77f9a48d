"""Scripts of a data journal: entries, and what its fold makes of each.

    LEADER epoch                          who appends from now on
    PLAIN [records= sequence= producer= epoch=]
    DRAFT transaction [records= sequence= previous=]
    PREPARED transaction [finished=]
    APPLY transaction [finished= rank=] [lead]
    REOPEN transaction
    DISCARD transaction [finished= fence=]
    TRIM offset
    FORGET_PRODUCERS producer ...

Every entry is 100 bytes long.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

from faircopy.copier.fold import (
    DISCARD_PAYLOAD,
    FORGET_PAYLOAD,
    NO_FENCE,
    NO_RANK,
    NOBODY,
    NOTHING_FINISHED,
    PREPARED_PAYLOAD,
    TRIM_PAYLOAD,
    ApplyOrder,
    Branch,
    CopyBatch,
    CopyTransaction,
    Effect,
    MoveStart,
    PartitionState,
    Standing,
)
from faircopy.copier.producers import ProducerState
from faircopy.errors import InvariantViolation
from faircopy.journal.entry import NO_TRANSACTION, NOWHERE, Entry, Kind, TransactionId
from faircopy.wire.batch import BatchHeader, read_header
from faircopy.wire.records import NewRecord, build_batch
from tests.known_transactions import known_transactions
from tests.scenarios.words import NOTHING, counted, difference, options_of, transaction_of

ENTRY_BYTES = 100


class DataJournalScript:
    """The fold of a data journal that begins empty."""

    def __init__(self) -> None:
        self._state = PartitionState()
        self._leader_epoch = 0

    def perform(self, command: str) -> list[str]:
        """Fold an entry. Returns its effect, and what has changed in the state."""
        kind, *words = command.split()
        if kind == "LEADER":
            self._leader_epoch = int(words[0])
            return []
        # What breaks an invariant leaves the state half changed; a broker would end.
        state = copy.deepcopy(self._state)
        try:
            effect = self._fold(state, Kind[kind], *options_of(words))
        except InvariantViolation as error:
            return [f"refused: {error}"]
        changes = difference(dict(written(self._state)), dict(written(state)))
        self._state = state
        return [*([told(effect)] if effect is not None else []), *changes] or [NOTHING]

    def _fold(
        self, state: PartitionState, kind: Kind, words: list[str], given: dict[str, int]
    ) -> Effect | None:
        transaction = transaction_of(words[0]) if words and "." in words[0] else NO_TRANSACTION
        branch = state.branch(transaction) or Branch()
        records = given.get("records", 1)
        previous = given.get("previous", branch.head if kind is Kind.DRAFT else NOWHERE)
        entry = Entry(
            kind, state.position, ENTRY_BYTES, records, self._leader_epoch, previous, transaction, 0
        )
        finished = given.get("finished", NOTHING_FINISHED)
        match kind:
            case Kind.PLAIN:
                producer = TransactionId(given.get("producer", NOBODY), given.get("epoch", 0), 0)
                return state.fold_plain(entry, batch_of(producer, records, given.get("sequence", 0)), b"")
            case Kind.DRAFT:
                state.fold_draft(entry, batch_of(transaction, records, given.get("sequence", 0)), b"")
                return None
            case Kind.PREPARED:
                return state.fold(entry, PREPARED_PAYLOAD.pack(branch.drafts, finished))
            case Kind.APPLY:
                lead = transaction_of(words[-1])
                order = ApplyOrder(finished, given.get("rank", NO_RANK), lead)
                return state.fold(entry, order.payload(transaction))
            case Kind.DISCARD:
                return state.fold(entry, DISCARD_PAYLOAD.pack(given.get("fence", NO_FENCE), finished))
            case Kind.REOPEN:
                return state.fold(entry, b"")
            case Kind.TRIM:
                return state.fold(entry, TRIM_PAYLOAD.pack(int(words[0])))
            case Kind.FORGET_PRODUCERS:
                return state.fold(entry, b"".join(FORGET_PAYLOAD.pack(int(word)) for word in words))
        raise ValueError(f"{kind.name} belongs to metadata journals")


def batch_of(transaction: TransactionId, records: int, sequence: int) -> BatchHeader:
    """The header of a batch of so many records."""
    batch = build_batch(
        [NewRecord(b"v")] * records,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        base_sequence=sequence,
    )
    return read_header(batch)


def told(effect: Effect) -> str:
    """An effect, for people."""
    match effect:
        case CopyBatch():
            end = effect.base_offset + effect.entry.records - 1
            return f"copy: the batch at {effect.entry.position}, to offsets {effect.base_offset}..{end}"
        case CopyTransaction():
            end = effect.base_offset + effect.records - 1
            lead = "" if effect.lead == effect.transaction else f", shown as {effect.lead}"
            return (
                f"copy: {counted(effect.drafts, 'draft')}, back from {effect.head}, to offsets "
                f"{effect.base_offset}..{end}, under epoch {effect.leader_epoch}{lead}"
            )
        case MoveStart():
            return f"delete: the log below offset {effect.start_offset}"


def written(state: PartitionState) -> Iterator[tuple[str, str]]:
    """The state as lines, each with a name."""
    yield "log", f"offsets {state.start_offset}..{state.next_offset - 1}"
    yield "leader epochs", str(state.epochs)
    first_needed = state.first_needed_position
    yield "needed from", f"position {first_needed}" if first_needed < state.position else "the tail"
    for transaction, branch in known_transactions(state).items():
        yield f"transaction {transaction}", written_branch(branch)
    for producer_id, producer in state.producers.items():
        yield f"producer {producer_id}", written_producer(producer)


def written_branch(branch: Branch) -> str:
    """A transaction in this partition."""
    if branch.standing is Standing.APPLIED:
        return f"APPLIED, rank {branch.rank}"
    if branch.standing is Standing.DISCARDED:
        return "DISCARDED"
    return f"{branch.standing.name}, {counted(branch.drafts, 'draft')} of {counted(branch.records, 'record')}"


def written_producer(producer: ProducerState) -> str:
    """What may follow from a producer."""
    if producer.seen:
        sequence = f"sequence {producer.seen[-1].last_sequence + 1}"
    else:
        sequence = "any sequence" if producer.is_forgotten else "sequence 0"
    return f"epoch {producer.epoch}, next is {sequence}"
