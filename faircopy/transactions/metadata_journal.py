"""One metadata journal J-k with its table: append and fold, checkpoint and open.

checkpoints        "J" k                                         -> see `journal.checkpoint`
transactional_ids  "J" k, transactional id in UTF-8, or its hash -> JSON of the producer, with transactions;
                                                                    if it is idle: see `producers.idle_row`
groups             "J" k, joint group in UTF-8, or its hash      -> JSON of the joint group
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from faircopy.errors import DoesNotFold, InvariantViolation
from faircopy.journal.checkpoint import (
    JournalCheckpoint,
    decode_journal_checkpoint,
    encode_journal_checkpoint,
)
from faircopy.journal.entry import Kind, TransactionId
from faircopy.journal.identity import METADATA_TOPIC_ID, TopicIdPartition
from faircopy.journal.journal import Journal
from faircopy.journal.reading import Recovered
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.state_store import Change, Delete, Put, StateStore, key_of_name
from faircopy.transactions.decisions import asked_again
from faircopy.transactions.joint_group import JointGroup, Membership
from faircopy.transactions.metadata_entry import decode, encode
from faircopy.transactions.producers import IDLE, UNTOUCHED, idle_row, read_idle_row
from faircopy.transactions.state import TransactionState
from faircopy.transactions.table import TransactionTable
from faircopy.transactions.transaction import NewEntry, Producer, Transaction

RETIRE_POLL_SECONDS = 0.002


class MetadataJournal:
    """J-k: its entries, and the table that they fold into."""

    def __init__(self, number: int, journal: Journal, store: StateStore, disk: DiskPool) -> None:
        self.number = number
        self.journal = journal
        self.table = TransactionTable()
        self._store = store
        self._disk = disk
        self.identity = journal_identity(number)
        self._checkpoint = JournalCheckpoint()
        self._checkpointing = False
        self._is_retired = False

    def append(self, entry: NewEntry) -> None:
        """Fold an entry and append it. To wait until it is durable, use `journal`."""
        self.journal.append(
            entry.kind,
            encode(entry.payload),
            fold=lambda appended: self.table.fold(entry, appended.position),
            transaction=entry.transaction,
        )

    def ensure_space(self) -> None:
        """Raise TransactionRefused on a full disk, or without other replicas: nothing is begun there."""
        with asked_again():
            self.journal.ensure_space()

    def ensure_replicas(self) -> None:
        """Raise TransactionRefused without other replicas: for what is new, and takes little space."""
        with asked_again():
            self.journal.ensure_replicas()

    def when_safe(self, callback: Callable[[], None], *, is_durable: bool) -> None:
        """Call back when all entries appended so far are kept (`Journal.when_kept`), so that they survive a
        kill; or, if `is_durable`, are durable, so that they survive a loss of power.
        """
        if is_durable:
            self.journal.when_durable(callback)
        else:
            self.journal.when_kept(callback)

    async def safe(self, *, is_durable: bool) -> None:
        """Wait until what `when_safe` calls back for is so."""
        if is_durable:
            await self.journal.durable()
        else:
            await self.journal.kept()

    # -- opening --------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Open it, in the steps of `partition.opening`. Blocks. Raises DamagedJournal, StorageFailure."""
        self._load()
        opening = self.journal.open(*self._checkpoint)
        for recovered in opening.entries():
            try:
                self._fold(recovered)
            except Exception as error:
                opening.refuse(recovered.entry, error)
        opening.judge_end()
        self.journal.ensure_leads(opening)
        self.journal.accept(opening)
        # What is read is durable.
        self.table.producers.sleep(undurable=(), flags=UNTOUCHED)

    def _load(self) -> None:
        """Restore the table of the last checkpoint."""
        value = self._store.get("checkpoints", self.identity)
        if value is not None:
            self._checkpoint = decode_journal_checkpoint(value)
            for _, stored in self._store.scan("groups", self.identity):
                group = decode_group(json.loads(stored))
                self.table.groups[group.name] = group
            self._restore_all()

    def _restore_all(self) -> None:
        """Restore the producers. Of a hundred thousand, all but a few are idle."""
        not_idle = list[dict[str, Any]]()
        for _, stored in self._store.scan("transactional_ids", self.identity):
            if stored.startswith(IDLE):
                self.table.producers.restore(*read_idle_row(stored))
            else:
                row = json.loads(stored.decode())  # of bytes, json would guess the encoding
                self._restore(row)
                self.table.changed.add(row["id"])  # by now it may be idle: then the next checkpoint packs it
                not_idle.append(row)
        for transaction_id, joined in joined_of(not_idle):
            self._unite(transaction_id, joined)

    def _restore(self, stored: dict[str, Any]) -> None:
        producer = decode_producer(stored)
        self.table.producers[producer.transactional_id] = producer
        for transaction in (*producer.ending.values(), *([producer.current] if producer.current else [])):
            self.table.transactions[transaction.id] = transaction

        if producer.membership is not None:
            self.table.groups[producer.membership.group].members.add(producer.transactional_id)

    def _unite(self, lead: TransactionId, joined: list[TransactionId]) -> None:
        transactions = self.table.transactions
        transactions[lead].joined = tuple(transactions[each] for each in joined)
        for each in transactions[lead].joined:
            each.lead = lead

    def _fold(self, recovered: Recovered) -> None:
        entry = recovered.entry
        found = NewEntry(Kind(entry.kind), entry.transaction, decode(recovered.payload))
        try:
            self.table.fold(found, entry.position)
        except InvariantViolation as error:
            raise DoesNotFold(str(error)) from error

    async def retire(self) -> None:
        """Stop leading, in order: when this returns, every entry is durable, and nothing is at work here."""
        self._is_retired = True
        await self.journal.durable()
        while self._checkpointing or self.journal.is_at_work:
            await asyncio.sleep(RETIRE_POLL_SECONDS)
        self.journal.retire()

    # -- checkpoints -----------------------------------------------------------------------------------------

    @property
    def bytes_since_checkpoint(self) -> int:
        return self.journal.watermarks.appended - self._checkpoint.position

    async def checkpoint(self) -> None:
        """Store the table as of now (I6), and free journal space."""
        if self._checkpointing or self._is_retired or not self.bytes_since_checkpoint:
            return
        self._checkpointing = True
        try:
            position = self.journal.watermarks.appended
            checkpoint = JournalCheckpoint(position, self.journal.epochs_below(position))
            changed, self.table.changed = self.table.changed, set()
            changed_groups, self.table.changed_groups = self.table.changed_groups, set()
            changes = [self._change(transactional_id) for transactional_id in changed]
            changes += [self._group_change(name) for name in changed_groups]
            changes.append(Put("checkpoints", self.identity, encode_journal_checkpoint(checkpoint)))
            try:
                await self.journal.sync()
                await self._store.write(changes)
            except BaseException:
                self.table.changed |= changed
                self.table.changed_groups |= changed_groups
                raise
            self._checkpoint = checkpoint
            self.table.producers.sleep(undurable=self.table.changed)
            for segment in self.journal.reclaim(position):
                await self._disk.run(segment.discard)
        finally:
            self._checkpointing = False

    def _change(self, transactional_id: str) -> Change:
        key = key_of_name(self.identity, transactional_id.encode())
        producer = self.table.producers.get(transactional_id)
        if producer is None:
            return Delete("transactional_ids", key)
        row = idle_row(producer)
        if row is None:
            row = json.dumps(encode_producer(producer)).encode()
        return Put("transactional_ids", key, row)

    def _group_change(self, name: str) -> Change:
        key = key_of_name(self.identity, name.encode())
        group = self.table.groups.get(name)
        if group is None:
            return Delete("groups", key)
        return Put("groups", key, json.dumps(encode_group(group)).encode())


def journal_identity(number: int) -> bytes:
    """The 20 bytes that name J-`number` in the store and in its segments' headers."""
    return TopicIdPartition(METADATA_TOPIC_ID, number).identity


def encode_group(group: JointGroup) -> dict[str, Any]:
    """A joint group as JSON, without its members: producers name the group that they belong to."""
    return {
        "name": group.name,
        "run": group.run,
        "former_runs": group.former_runs,
        "committed_key": group.committed_key,
        "deciding": list(group.deciding.items()),
        "named": list(group.named.items()),
    }


def decode_group(stored: dict[str, Any]) -> JointGroup:
    """The joint group in this JSON."""
    group = JointGroup(stored["name"])
    group.run, group.former_runs = stored["run"], stored["former_runs"]
    group.committed_key = stored["committed_key"]
    group.deciding = {key: TransactionId(*lead) for key, lead in stored["deciding"]}
    group.named = dict(stored["named"])
    return group


def joined_of(rows: Iterable[dict[str, Any]]) -> Iterator[tuple[TransactionId, list[TransactionId]]]:
    """Each lead in the JSON of producers, and the transactions that are joined to it."""
    for row in rows:
        for transaction in row["ending"]:
            if transaction.get("joined"):
                joined = [TransactionId(*each) for each in transaction["joined"]]
                yield TransactionId(*transaction["id"]), joined


def encode_producer(producer: Producer) -> dict[str, Any]:
    """A producer as JSON."""
    return {
        "id": producer.transactional_id,
        "producer": [producer.producer_id, producer.epoch],
        "timeout_ms": producer.timeout_ms,
        "pardoned_epoch": producer.previous_epoch,
        "must_abort": producer.must_abort,
        "durable": producer.is_durable,
        "current": encode_transaction(producer.current) if producer.current else None,
        "ending": [encode_transaction(transaction) for transaction in producer.ending.values()],
        "last_phase": producer.last_state.value if producer.last_state else None,
        "last_number": producer.last_number,
        "updated_ms": producer.updated_ms,
        "membership": producer.membership,
    }


def decode_producer(stored: dict[str, Any]) -> Producer:
    """The producer in this JSON."""
    producer = Producer(stored["id"], stored["producer"][0], stored["producer"][1], stored["timeout_ms"])
    producer.previous_epoch, producer.must_abort = stored["pardoned_epoch"], stored["must_abort"]
    producer.is_durable = stored["durable"]
    if stored["current"]:
        producer.current = decode_transaction(stored["current"], stored["id"])
    ending = [decode_transaction(transaction, stored["id"]) for transaction in stored["ending"]]
    producer.ending = {transaction.id: transaction for transaction in ending}
    producer.last_state = TransactionState(stored["last_phase"]) if stored["last_phase"] else None
    producer.last_number, producer.updated_ms = stored["last_number"], stored["updated_ms"]
    if stored["membership"]:
        producer.membership = Membership(*stored["membership"])
    return producer


def encode_transaction(transaction: Transaction) -> dict[str, Any]:
    """A transaction as JSON."""
    return {
        "id": transaction.id,
        "timeout_ms": transaction.timeout_ms,
        "started_ms": transaction.started_ms,
        "phase": transaction.state.value,
        "partitions": [
            [*participant.listed, leader_epoch] for participant, leader_epoch in transaction.epochs.items()
        ],
        "prepared_position": transaction.prepared_position,
        "fence_epoch": transaction.fence_epoch,
        "joined": [each.id for each in transaction.joined],
        "begins_durably": transaction.begins_durably,
        "durable_in": [participant.listed for participant in transaction.durable_in],
    }


def decode_transaction(stored: dict[str, Any], transactional_id: str) -> Transaction:
    """The transaction in this JSON."""
    transaction = Transaction(
        TransactionId(*stored["id"]), transactional_id, stored["timeout_ms"], stored["started_ms"]
    )
    transaction.state = TransactionState(stored["phase"])
    transaction.epochs = {
        TopicIdPartition.read(topic_id, partition): leader_epoch
        for topic_id, partition, leader_epoch in stored["partitions"]
    }
    transaction.begins_durably = stored["begins_durably"]
    transaction.durable_in = frozenset(
        TopicIdPartition.read(*participant) for participant in stored["durable_in"]
    )
    transaction.prepared_position, transaction.fence_epoch = (
        stored["prepared_position"],
        stored["fence_epoch"],
    )
    return transaction
