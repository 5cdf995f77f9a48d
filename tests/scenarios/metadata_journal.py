"""Scripts of a metadata journal: entries, and what its fold makes of each.

    FENCE producer.epoch id [previous= told=]
    BEGIN transaction id
    ADD transaction partition ...
    PREPARE_COMMIT transaction
    PREPARE_ABORT transaction [fence= untold=]
    COMMITTED transaction
    ABORTED transaction
    FORGET id
    UNCLEAN

Every entry is 100 bytes long.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

from faircopy.errors import InvariantViolation
from faircopy.journal.entry import NO_TRANSACTION, Kind
from faircopy.transactions import decisions
from faircopy.transactions.metadata_entry import decode, encode
from faircopy.transactions.state import TransactionState
from faircopy.transactions.table import TransactionTable
from faircopy.transactions.transaction import NOBODY, NewEntry, Producer, Transaction
from tests.scenarios.words import NOTHING, difference, options_of, participant_of, transaction_of, word_of

ENTRY_BYTES = 100
TIMEOUT_MS = 60_000
LEADER_EPOCH = 1


class MetadataJournalScript:
    """The fold of a metadata journal that begins empty. Payloads pass through their bytes."""

    def __init__(self) -> None:
        self._table = TransactionTable()
        self._position = 0

    def perform(self, command: str) -> list[str]:
        """Fold an entry. Returns what has changed in the table."""
        kind, *words = command.split()
        table = copy.deepcopy(self._table)
        entry = self._entry(table, Kind[kind], *options_of(words))
        try:
            table.fold(entry._replace(payload=decode(encode(entry.payload))), self._position)
        except InvariantViolation as error:
            return [f"refused: {error}"]
        changes = difference(dict(written(self._table)), dict(written(table)))
        self._table = table
        self._position += ENTRY_BYTES
        return changes or [NOTHING]

    def _entry(
        self, table: TransactionTable, kind: Kind, words: list[str], given: dict[str, int]
    ) -> NewEntry:
        match kind:
            case Kind.FENCE:
                producer_id, epoch = map(int, words[0].split("."))
                previous = given.get("previous", NOBODY)
                entry = decisions.fence(words[1], producer_id, epoch, TIMEOUT_MS, 0, previous)
                return entry._replace(payload=entry.payload | {"told": bool(given.get("told"))})
            case Kind.FORGET:
                return decisions.forget(table.producers[words[0]])
            case Kind.UNCLEAN:
                return NewEntry(kind, NO_TRANSACTION, {})
            case Kind.BEGIN:
                begin = {"id": words[1], "timeout_ms": TIMEOUT_MS, "at_ms": 0}
                return NewEntry(kind, transaction_of(words[0]), begin)
            case Kind.ADD:
                added = [[*participant_of(word), LEADER_EPOCH] for word in words[1:]]
                return NewEntry(kind, transaction_of(words[0]), {"partitions": added})
            case Kind.PREPARE_COMMIT:
                return decisions.prepare_commit(known(table, words[0]))
            case Kind.PREPARE_ABORT:
                transaction = known(table, words[0])
                fence_epoch = given.get("fence", transaction.id.producer_epoch)
                return decisions.prepare_abort(transaction, fence_epoch, untold=bool(given.get("untold")))
            case _:
                return NewEntry(kind, transaction_of(words[0]), {})


def known(table: TransactionTable, word: str) -> Transaction:
    """A transaction that the table has."""
    return table.transactions[transaction_of(word)]


def written(table: TransactionTable) -> Iterator[tuple[str, str]]:
    """The table as lines, each with a name."""
    for transactional_id, producer in table.producers.items():
        yield transactional_id, written_producer(producer)
    for transaction in table.transactions.values():
        yield f"transaction {transaction.id}", written_transaction(transaction)


def written_producer(producer: Producer) -> str:
    """One transactional id."""
    parts = [f"producer {producer.producer_id}, epoch {producer.epoch}", producer.state_name]
    if producer.previous_epoch != NOBODY:
        parts.append(f"epoch {producer.previous_epoch} may come back")
    if producer.must_abort:
        parts.append("must abort first")
    return ", ".join(parts)


def written_transaction(transaction: Transaction) -> str:
    """One transaction."""
    parts = [transaction.state.value, *map(word_of, transaction.participants)]
    if transaction.state is TransactionState.PREPARE_ABORT:
        parts.append(f"fences below epoch {transaction.fence_epoch}")
    return ", ".join(parts)
