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
    JOIN producer group run key
    DECIDE group run key [producer ...]
    FORGET_GROUP group

DECIDE is the PREPARE_COMMIT of a joint group, and FORGET_GROUP its FORGET. `-` is the key of a member without
one. Every entry is 100 bytes long.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

from faircopy.errors import InvariantViolation
from faircopy.journal.entry import NO_TRANSACTION, Kind
from faircopy.transactions import decisions, joint_decisions
from faircopy.transactions.decisions import TransactionRefused
from faircopy.transactions.joint_group import NO_KEY, JointGroup, Membership
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
        try:
            if kind in JOINT:
                entry = JOINT[kind](table, *words)
            else:
                entry = self._entry(table, Kind[kind], *options_of(words))
        except TransactionRefused as error:
            return [f"refused: {error}"]
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
                return NewEntry(kind, NO_TRANSACTION, {"all": True})
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


def join(table: TransactionTable, producer: str, group: str, run: str, key: str) -> NewEntry:
    """A JOIN."""
    membership = Membership(group, run, key_of(key), "task")
    return joint_decisions.join(table, membership, int(producer), TIMEOUT_MS, 0)


def decide(table: TransactionTable, group: str, run: str, key: str, *producers: str) -> NewEntry:
    """The PREPARE_COMMIT of a joint group."""
    return joint_decisions.commit(table, group, run, key_of(key), map(int, producers))


def forget_group(table: TransactionTable, group: str) -> NewEntry:
    """The FORGET of a joint group."""
    entry = joint_decisions.forget(table, group)
    assert entry is not None, f"there is no group {group}"
    return entry


JOINT: dict[str, Callable[..., NewEntry]] = {"JOIN": join, "DECIDE": decide, "FORGET_GROUP": forget_group}


def key_of(word: str) -> int:
    """The key of a member."""
    return NO_KEY if word == "-" else int(word)


def known(table: TransactionTable, word: str) -> Transaction:
    """A transaction that the table has."""
    return table.transactions[transaction_of(word)]


def written(table: TransactionTable) -> Iterator[tuple[str, str]]:
    """The table as lines, each with a name."""
    for transactional_id, producer in table.producers.items():
        yield transactional_id, written_producer(producer)
    for transaction in table.transactions.values():
        yield f"transaction {transaction.id}", written_transaction(transaction)
    for group in table.groups.values():
        yield f"group {group.name}", written_group(group)
    if table.gone:
        yield "gone", ", ".join(f"producer {number}" for number in sorted(table.gone))


def written_producer(producer: Producer) -> str:
    """One transactional id."""
    parts = [f"producer {producer.producer_id}, epoch {producer.epoch}", producer.state_name]
    if producer.previous_epoch != NOBODY:
        parts.append(f"epoch {producer.previous_epoch} may come back")
    if producer.must_abort:
        parts.append("must abort first")
    if producer.membership is not None:
        _, run, key, _ = producer.membership
        parts.append(f"of run {run}" if key == NO_KEY else f"of run {run}, for key {key}")
    return ", ".join(parts)


def written_transaction(transaction: Transaction) -> str:
    """One transaction."""
    parts = [transaction.state.value, *map(word_of, transaction.participants)]
    if transaction.state is TransactionState.PREPARE_ABORT:
        parts.append(f"fences below epoch {transaction.fence_epoch}")
    if transaction.lead is not None:
        parts.append(f"joined to {transaction.lead}")
    return ", ".join(parts)


def written_group(group: JointGroup) -> str:
    """One joint group."""
    parts = [f"run {group.run}"]
    if group.former_runs:
        parts.append(f"formerly {' '.join(group.former_runs)}")
    if group.committed_key != NO_KEY:
        parts.append(f"key {group.committed_key} is committed")
    parts += [f"key {key} is decided, by {lead}" for key, lead in group.deciding.items()]
    parts += [f"key {key} names {' '.join(map(str, named))}" for key, named in group.named.items() if named]
    return ", ".join(parts)
