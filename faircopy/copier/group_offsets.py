"""Committed offsets of consumer groups: one more fold, over the journal of an offsets partition (DESIGN, section 3).

A payload is JSON:

    {"group": g, "offsets": [[topic, partition, offset, leader epoch, metadata, committed at (ms)], ...]}

An offset of null takes the commitment away. Within a transaction such a payload is a draft, and counts when it is
applied. In the state store:

    group_offsets  identity, JSON [group, topic, partition] or its hash
                       -> JSON [group, topic, partition, offset, leader epoch, metadata, committed at]
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import NamedTuple

from faircopy.copier.checkpoint import Checkpoint
from faircopy.copier.fold import CopyBatch, CopyTransaction, Effect
from faircopy.journal.entry import TransactionId
from faircopy.journal.journal import Journal
from faircopy.journal.recovery import Recovered
from faircopy.journal.reverse_list import Walk, read_from_disk
from faircopy.storage.files import Buffer
from faircopy.storage.state_store import Change, Delete, Put, StateStore, key_of_name

Place = tuple[str, int]  # topic, partition


class GroupOffset(NamedTuple):
    """What a group committed for one partition; `committed_ms` is the wall clock's time."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int


class OffsetChange(NamedTuple):
    """A commitment, or with `committed` None its withdrawal."""

    topic: str
    partition: int
    committed: GroupOffset | None


def encode_offsets(group: str, changes: Iterable[OffsetChange]) -> bytes:
    """The payload for changes of one group's offsets."""
    rows = [[change.topic, change.partition, *(change.committed or (None, -1, "", 0))] for change in changes]
    return json.dumps({"group": group, "offsets": rows}, separators=(",", ":")).encode()


def decode_offsets(payload: Buffer) -> tuple[str, list[OffsetChange]]:
    """The group and the changes in a payload."""
    stored = json.loads(bytes(payload))
    changes = [
        OffsetChange(topic, partition, None if committed[0] is None else GroupOffset(*committed))
        for topic, partition, *committed in stored["offsets"]
    ]
    return stored["group"], changes


class GroupOffsets:
    """The sink of an offsets partition's journal, and the table it makes."""

    def __init__(self, identity: bytes, journal: Journal, store: StateStore) -> None:
        self._identity = identity
        self._journal = journal
        self._store = store
        self._committed: dict[str, dict[Place, GroupOffset]] = {}
        self._unstable: dict[TransactionId, set[tuple[str, Place]]] = {}
        self._changed: set[tuple[str, Place]] = set()
        self._storing: set[tuple[str, Place]] = set()

    # -- the table -----------------------------------------------------------------------------------------------

    def groups(self) -> list[str]:
        """Groups that have committed offsets."""
        return list(self._committed)

    def committed(self, group: str) -> dict[Place, GroupOffset]:
        """What a group has committed."""
        return self._committed.get(group, {})

    def unstable(self, group: str) -> set[Place]:
        """Partitions for which an open transaction holds offsets of this group."""
        return {place for pending in self._unstable.values() for name, place in pending if name == group}

    def pending(self, group: str) -> list[TransactionId]:
        """The transactions that hold offsets of this group, and are not yet applied to the table."""
        return [txid for txid, places in self._unstable.items() if any(name == group for name, _ in places)]

    def note_draft(self, transaction: TransactionId, payload: Buffer) -> None:
        """A draft was appended: its partitions are unstable until the transaction is over."""
        group, changes = decode_offsets(payload)
        pending = self._unstable.setdefault(transaction, set())
        pending.update((group, (change.topic, change.partition)) for change in changes)

    def note_end(self, transaction: TransactionId) -> None:
        """A transaction was discarded."""
        self._unstable.pop(transaction, None)

    def _apply(self, payload: Buffer) -> None:
        group, changes = decode_offsets(payload)
        committed = self._committed.setdefault(group, {})
        for change in changes:
            place = (change.topic, change.partition)
            if change.committed is None:
                committed.pop(place, None)
            else:
                committed[place] = change.committed
            self._changed.add((group, place))
        if not committed:
            del self._committed[group]

    # -- the sink ------------------------------------------------------------------------------------------------

    def push(self, effect: Effect, payload: Buffer | None) -> None:
        if isinstance(effect, CopyBatch):
            assert payload is not None
            self._apply(payload)
        elif isinstance(effect, CopyTransaction):
            self._apply_transaction(effect)
            self.note_end(effect.transaction)

    def _apply_transaction(self, effect: CopyTransaction) -> None:
        walk = Walk(self._journal, effect.transaction, read_from_disk)
        for draft in walk.collect(effect.head, keep_bytes=effect.size):
            assert draft.payload is not None
            self._apply(draft.payload)

    def push_barrier(self, reached: Callable[[], None]) -> None:
        reached()

    def recover(self, effect: Effect, recovered: Recovered) -> None:
        self.push(effect, recovered.payload)

    def recovered(self) -> None:
        """The table can't hold more than the journal gave it."""

    def recover_open(self, transaction: TransactionId, head: int) -> None:
        """After recovery: note the drafts of a transaction that is still open. Raises DamagedJournal."""
        for draft in Walk(self._journal, transaction, read_from_disk).collect(head, keep_bytes=1 << 30):
            assert draft.payload is not None
            try:
                self.note_draft(transaction, draft.payload)
            except Exception as error:
                raise self._journal.misfit(draft.entry.position, error) from error

    def load(self) -> None:
        """Read the table as the last checkpoint stored it. Blocks."""
        for _, value in self._store.scan("group_offsets", self._identity):
            group, topic, partition, *committed = json.loads(value)
            self._committed.setdefault(group, {})[(topic, partition)] = GroupOffset(*committed)

    def snapshot(self) -> tuple[list[Change], Checkpoint]:
        self._storing |= self._changed
        self._changed = set()
        changes = [self._change(group, place) for group, place in self._storing]
        return changes, Checkpoint(0, 0, 0, None, 0, 0)

    def _change(self, group: str, place: Place) -> Change:
        key = key_of_name(self._identity, json.dumps([group, *place]).encode())
        committed = self._committed.get(group, {}).get(place)
        if committed is None:
            return Delete("group_offsets", key)
        return Put("group_offsets", key, json.dumps([group, *place, *committed]).encode())

    async def sync(self) -> None:
        """Nothing is written outside the journal and the store."""

    def stored(self) -> None:
        self._storing = set()
