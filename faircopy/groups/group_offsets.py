"""Committed offsets and members of consumer groups: a fold over the journal of an offsets partition.

A payload is JSON:

    {"group": g, "offsets": [[topic id, partition, offset, leader epoch, metadata, committed at (ms)], ...]}

An offset of null deletes the committed offset. Within a transaction such a payload is a draft, and counts
once it is applied. Topics are stored by id, so an offset never lands on a topic that was recreated under the
same name.

Other payloads say who is in a group (`groups/group_metadata.py`). A deleted group loses both in one entry:
`"membership": null` together with its offsets of null. In the state store:

    group_offsets  identity, JSON [group, topic id, partition] or its hash
                       -> JSON [group, topic id, partition, offset, leader epoch, metadata, committed at]
    groups         identity, JSON of the group or its hash
                       -> the payload that said who is in it
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import NamedTuple

from faircopy.copier.checkpoint import Checkpoint
from faircopy.copier.fold import CopyBatch, CopyTransaction, Effect
from faircopy.groups.group_metadata import LINE_END, GroupMetadata, decode_group
from faircopy.groups.offsets import CommittedOffset, OffsetChanges
from faircopy.journal.entry import TransactionId
from faircopy.journal.identity import TopicIdPartition
from faircopy.journal.journal import Journal
from faircopy.journal.reverse_list import ReverseWalk, read_from_disk
from faircopy.storage.state_store import Change, Delete, Put, StateStore, key_of_name
from faircopy.storage.system import Buffer


class GroupChange(NamedTuple):
    """A payload's change of a group. `metadata` counts only if `has_metadata`; None deletes it."""

    group: str
    offsets: OffsetChanges
    has_metadata: bool = False
    metadata: GroupMetadata | None = None


class UnderWay(NamedTuple):
    """A change of a group that is appended, but not in the table yet."""

    offsets: OffsetChanges = MappingProxyType({})
    deletes_group: bool = False


class KeptGroup(NamedTuple):
    """A known group, whether or not it has members or offsets now. `payload` is the one that stored it."""

    payload: bytes
    protocol_type: str
    has_members: bool
    changed_ms: int

    @property
    def metadata(self) -> GroupMetadata:
        """The whole metadata, decoded."""
        found = decode_change(self.payload).metadata
        assert found is not None
        return found


def encode_offsets(group: str, changes: OffsetChanges, *, deletes_group: bool = False) -> bytes:
    """The payload for changes of one group's offsets. With `deletes_group` it also deletes its members."""
    rows = [[*place.listed, *(committed or (None, -1, "", 0))] for place, committed in changes.items()]
    membership = {"membership": None} if deletes_group else {}
    return json.dumps({"group": group, "offsets": rows} | membership, separators=(",", ":")).encode()


def decode_change(payload: Buffer) -> GroupChange:
    """The change in a payload."""
    line, _, rest = bytes(payload).partition(LINE_END)
    stored = json.loads(line)
    changes = {
        TopicIdPartition.read(topic_id, partition): None if row[0] is None else CommittedOffset(*row)
        for topic_id, partition, *row in stored.get("offsets", ())
    }
    if "membership" not in stored:
        return GroupChange(stored["group"], changes)
    membership = stored["membership"]
    metadata = None if membership is None else decode_group(membership, rest)
    return GroupChange(stored["group"], changes, True, metadata)


class GroupOffsets:
    """The sink of an offsets partition's journal, and the table that it builds."""

    def __init__(self, identity: bytes, journal: Journal, store: StateStore) -> None:
        self._identity = identity
        self._journal = journal
        self._store = store
        self._committed: dict[str, dict[TopicIdPartition, CommittedOffset]] = {}
        self._unstable: dict[TransactionId, set[tuple[str, TopicIdPartition]]] = {}
        self._kept: dict[str, KeptGroup] = {}
        self._under_way: dict[str, deque[UnderWay]] = {}  # appended without a transaction, not applied yet
        self._changed: set[tuple[str, TopicIdPartition | None]] = (
            set()
        )  # None in place of a partition: the members
        self._storing: set[tuple[str, TopicIdPartition | None]] = set()

    # -- the table -------------------------------------------------------------------------------------------

    def groups(self) -> list[str]:
        """Groups with committed offsets."""
        return list(self._committed)

    def kept(self) -> dict[str, KeptGroup]:
        """Groups that have, or had, members."""
        return self._kept

    def committed(self, group: str) -> dict[TopicIdPartition, CommittedOffset]:
        """The committed offsets of a group."""
        return self._committed.get(group, {})

    def unstable(self, group: str) -> set[TopicIdPartition]:
        """Partitions for which an open transaction holds offsets of this group."""
        return {place for pending in self._unstable.values() for name, place in pending if name == group}

    def pending(self, group: str) -> list[TransactionId]:
        """The transactions that hold offsets of this group and are not yet applied to the table."""
        return [txid for txid, places in self._unstable.items() if any(name == group for name, _ in places)]

    def note_draft(self, transaction: TransactionId, payload: Buffer) -> None:
        """Note an appended draft: its partitions are unstable until the transaction is over."""
        group, changes, *_ = decode_change(payload)
        pending = self._unstable.setdefault(transaction, set())
        pending.update((group, place) for place in changes)

    def note_end(self, transaction: TransactionId) -> None:
        """Note that a transaction was discarded."""
        self._unstable.pop(transaction, None)

    def note_plain(self, group: str, appended: UnderWay) -> None:
        """Note an appended change without a transaction: the table gets it when it is durable."""
        self._under_way.setdefault(group, deque()).append(appended)

    def is_changing(self, group: str) -> bool:
        """Whether a change of a group may be on its way into the table: its transaction is not over."""
        return group in self._under_way or bool(self.pending(group))

    def is_being_deleted(self, group: str) -> bool:
        """Whether the deletion of a group is on its way: what is appended now belongs to a new group."""
        return any(appended.deletes_group for appended in self._under_way.get(group, ()))

    def places(self, group: str) -> Iterable[TopicIdPartition]:
        """Partitions for which a group has committed an offset, or is about to, without a transaction."""
        under_way = (place for appended in self._under_way.get(group, ()) for place in appended.offsets)
        return dict.fromkeys((*self.committed(group), *under_way))

    def _end_plain(self, group: str) -> None:
        """Note that the earliest of a group's changes is in the table. After a restart, none is under way."""
        under_way = self._under_way.get(group)
        if under_way is not None:
            under_way.popleft()
            if not under_way:
                del self._under_way[group]

    def _apply(self, change: GroupChange, payload: Buffer) -> None:
        self._apply_offsets(change.group, change.offsets)
        if change.has_metadata:
            self._keep(change.group, change.metadata, payload)
            self._changed.add((change.group, None))

    def _apply_offsets(self, group: str, changes: OffsetChanges) -> None:
        committed = self._committed.setdefault(group, {})
        for place, offset in changes.items():
            if offset is None:
                committed.pop(place, None)
            else:
                committed[place] = offset
            self._changed.add((group, place))
        if not committed:
            del self._committed[group]

    def _keep(self, group: str, metadata: GroupMetadata | None, payload: Buffer) -> None:
        if metadata is None:
            self._kept.pop(group, None)
        else:
            protocol_type, has_members = metadata.protocol_type or "", bool(metadata.members)
            self._kept[group] = KeptGroup(bytes(payload), protocol_type, has_members, metadata.changed_ms)

    # -- the sink --------------------------------------------------------------------------------------------

    waits_for_space = False

    def push(self, effect: Effect, payload: Buffer | None) -> None:
        if isinstance(effect, CopyBatch):
            assert payload is not None
            change = decode_change(payload)
            self._apply(change, payload)
            self._end_plain(change.group)
        elif isinstance(effect, CopyTransaction):
            self._apply_transaction(effect)
            self.note_end(effect.transaction)

    def _apply_transaction(self, effect: CopyTransaction) -> None:
        walk = ReverseWalk(self._journal, effect.transaction, read_from_disk)
        for draft in walk.collect(effect.head, keep_bytes=effect.size):
            assert draft.payload is not None
            self._apply(decode_change(draft.payload), draft.payload)

    def push_barrier(self, reached: Callable[[], None]) -> None:
        reached()

    def recover_open(self, transaction: TransactionId, head: int) -> None:
        """Note the drafts of a transaction that is still open after recovery. Raises DamagedJournal."""
        for draft in ReverseWalk(self._journal, transaction, read_from_disk).collect(
            head, keep_bytes=1 << 30
        ):
            assert draft.payload is not None
            try:
                self.note_draft(transaction, draft.payload)
            except Exception as error:
                raise self._journal.misfit(draft.entry.position, error) from error

    def load(self) -> None:
        """Read the table, which is stored together with the checkpoint. Blocks."""
        for _, value in self._store.scan("group_offsets", self._identity):
            group, topic_id, partition, *committed = json.loads(value)
            place = TopicIdPartition.read(topic_id, partition)
            self._committed.setdefault(group, {})[place] = CommittedOffset(*committed)
        for _, payload in self._store.scan("groups", self._identity):
            change = decode_change(payload)
            self._keep(change.group, change.metadata, payload)

    def snapshot(self) -> tuple[list[Change], Checkpoint]:
        self._storing |= self._changed
        self._changed = set()
        changes = [self._change(group, place) for group, place in self._storing]
        return changes, Checkpoint(0, 0, 0, None, 0)

    def _change(self, group: str, place: TopicIdPartition | None) -> Change:
        if place is None:
            return self._group_change(group)
        key = key_of_name(self._identity, json.dumps([group, *place.listed]).encode())
        committed = self._committed.get(group, {}).get(place)
        if committed is None:
            return Delete("group_offsets", key)
        return Put("group_offsets", key, json.dumps([group, *place.listed, *committed]).encode())

    def _group_change(self, group: str) -> Change:
        key, kept = key_of_name(self._identity, json.dumps(group).encode()), self._kept.get(group)
        return Delete("groups", key) if kept is None else Put("groups", key, kept.payload)

    async def sync(self) -> None:
        """Do nothing: the table is written only to the journal and the store."""

    def stored(self) -> None:
        self._storing = set()

    def retire(self) -> None:
        """Do nothing: the table has no files."""
