"""The lives of transactions: the fold of a metadata journal. Pure.

Running and recovering differ only in where the entries come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from faircopy.errors import InvariantViolation, invariant
from faircopy.journal.entry import NO_TRANSACTION, Kind, TransactionId
from faircopy.journal.identity import TopicIdPartition
from faircopy.transactions.joint_group import NO_KEY, JointGroup, Membership
from faircopy.transactions.producers import Producers
from faircopy.transactions.state import TransactionState, state_after
from faircopy.transactions.transaction import MAX_EPOCH, NewEntry, Producer, Transaction


def open_transactions(members: Iterable[Producer]) -> list[Transaction]:
    """The open transactions of some producers."""
    return [member.current for member in members if member.current is not None]


class TransactionTable:
    """The state of one metadata journal, written by its fold only.

    `changed` and `changed_groups` are for the next checkpoint. `gone` has the producer ids of members of
    joint groups that are no more: partitions that know them are yet to forget them.
    """

    def __init__(self) -> None:
        self.producers = Producers()
        self.transactions: dict[TransactionId, Transaction] = {}
        self.groups: dict[str, JointGroup] = {}
        self.changed: set[str] = set()
        self.changed_groups: set[str] = set()
        self.gone: set[int] = set()

    def memberships(self, group: str) -> Iterator[tuple[Producer, Membership]]:
        """The members of a joint group, in no order that matters."""
        known = self.groups.get(group)
        for transactional_id in sorted(known.members) if known is not None else ():
            member = self.producers[transactional_id]
            assert member.membership is not None
            yield member, member.membership

    def left_behind(self, entry: NewEntry) -> list[Producer]:
        """The members of a joint group that an entry of the group fences, or a decision does not name."""
        group, run, key = (entry.payload[name] for name in ("group", "run", "key"))
        named = {entry.transaction, *(TransactionId(*each) for each, _ in entry.payload.get("joined", ()))}
        is_decision = entry.kind is Kind.PREPARE_COMMIT
        return [
            member
            for member, its in self.memberships(group)
            if its.run != run
            or (
                (is_decision and NO_KEY < its.key <= key)
                and (member.current is None or member.current.id not in named)
            )
        ]

    def named(self, decision: NewEntry) -> list[Transaction]:
        """The transactions that a joint decision commits: the lead first; none if nothing was written."""
        joined = [TransactionId(*each) for each, _ in decision.payload["joined"]]
        return [self._known(each) for each in (decision.transaction, *joined) if each != NO_TRANSACTION]

    def take_gone(self) -> set[int]:
        """The producer ids in `gone`, which the caller will have forgotten."""
        gone, self.gone = self.gone, set()
        return gone

    # -- the fold --------------------------------------------------------------------------------------------

    def fold(self, entry: NewEntry, position: int) -> None:
        """Fold the entry at `position` of the journal. Raises InvariantViolation for one that can't follow
        those before it; then nothing is changed.
        """
        match entry.kind:
            case Kind.FENCE:
                self._fold_fence(entry, position)
            case Kind.FORGET if "group" in entry.payload:
                self._fold_forget_group(entry.payload["group"])
            case Kind.FORGET:
                self._forget(entry.payload["id"])
            case Kind.JOIN:
                self._fold_join(entry, position)
            case Kind.PREPARE_COMMIT if "group" in entry.payload:
                self._fold_joint_commit(entry, position)
            case Kind.BEGIN:
                self._fold_begin(entry)
            case Kind.UNCLEAN:
                self._fold_unclean(is_all=entry.payload["all"])
            case _:
                self._fold_step(entry, position)

    def _fold_fence(self, entry: NewEntry, position: int) -> None:
        transactional_id = entry.payload["id"]
        producer = self.producers.wake(transactional_id)
        producer_id, epoch, _ = entry.transaction
        is_same = producer is not None and producer.producer_id == producer_id
        if producer is not None:
            invariant(producer.membership is None or is_same, "a member keeps its producer id")
            invariant(epoch >= producer.epoch or not is_same, "epochs of a producer only grow")
            if producer.current is not None:
                self._fence_off(producer, producer.current, epoch if is_same else MAX_EPOCH + 1, position)
        if producer is None or not is_same:
            fresh = Producer(transactional_id, producer_id, epoch, entry.payload["timeout_ms"])
            if producer is not None:
                fresh.ending, fresh.last_state = producer.ending, producer.last_state
                fresh.last_number = producer.last_number
            self.producers[transactional_id] = producer = fresh
        else:
            producer.epoch = epoch
            producer.timeout_ms = entry.payload["timeout_ms"]
            producer.must_abort = False
        producer.previous_epoch = entry.payload["pardoned"]
        producer.updated_ms = entry.payload["at_ms"]
        producer.is_durable = entry.payload["durable"]
        if entry.payload["told"]:
            producer.last_state = TransactionState.ABORTED
        self.changed.add(transactional_id)

    def _fence_off(
        self, producer: Producer, transaction: Transaction, fence_epoch: int, position: int
    ) -> None:
        """Abort the open transaction of an instance that is fenced."""
        transaction.state = state_after(transaction.state, Kind.FENCE)
        transaction.fence_epoch = fence_epoch
        self._end(producer, transaction, position)

    def _end(self, producer: Producer, transaction: Transaction, position: int) -> None:
        """Note that a transaction is decided, by the entry at `position`."""
        transaction.prepared_position = position
        if producer.current is transaction:
            producer.current = None
        producer.ending[transaction.id] = transaction
        producer.last_state = transaction.state

    def _forget(self, transactional_id: str) -> None:
        """Forget a transactional id, if it is known."""
        self._ensure_idle(transactional_id)
        producer = self.producers.pop(transactional_id, None)
        self.changed.add(transactional_id)
        if producer is not None and producer.membership is not None:
            self.gone.add(producer.producer_id)
            group = self.groups.get(producer.membership.group)
            if group is not None:
                group.members.discard(transactional_id)

    def _ensure_idle(self, transactional_id: str) -> None:
        producer = self.producers.get(transactional_id)
        invariant(producer is None or not producer.is_busy, "a busy id is not forgotten")

    def _fold_unclean(self, *, is_all: bool) -> None:
        self.changed |= self.producers.make_abort(is_all=is_all)

    def _fold_begin(self, entry: NewEntry) -> None:
        producer = self._known_producer(entry.payload["id"])
        invariant(producer.current is None, "a producer has one transaction open at a time")
        invariant(entry.transaction.number > producer.last_number, "I4: numbers of a producer only grow")
        producer.last_number = entry.transaction.number
        producer.updated_ms = entry.payload["at_ms"]
        transaction = Transaction(
            entry.transaction, producer.transactional_id, entry.payload["timeout_ms"], entry.payload["at_ms"]
        )
        transaction.state = state_after(None, entry.kind)
        transaction.begins_durably = producer.is_durable
        producer.current = self.transactions[entry.transaction] = transaction
        self.changed.add(producer.transactional_id)

    def _fold_step(self, entry: NewEntry, position: int) -> None:
        transaction = self._known(entry.transaction)
        following = state_after(transaction.state, entry.kind)
        producer = self.producers[transaction.transactional_id]
        self.changed.add(producer.transactional_id)
        transaction.state = following
        match entry.kind:
            case Kind.ADD:
                self._fold_add(transaction, entry.payload["partitions"])
            case Kind.PREPARE_COMMIT | Kind.PREPARE_ABORT:
                self._fold_prepare(producer, transaction, entry, position)
            case Kind.COMMITTED | Kind.ABORTED:
                for each in transaction.united:
                    self._fold_over(each, following)
                self._fold_decided(transaction, is_committed=entry.kind is Kind.COMMITTED)

    def _fold_add(self, transaction: Transaction, rows: Iterable[list[Any]]) -> None:
        for topic_id, partition, leader_epoch, *is_durable in rows:
            participant = TopicIdPartition(topic_id, partition)
            transaction.epochs[participant] = leader_epoch
            if is_durable:
                transaction.durable_in |= {participant}

    def _known(self, transaction: TransactionId) -> Transaction:
        known = self.transactions.get(transaction)
        if known is None:
            raise InvariantViolation(f"transaction {transaction} is not known")
        return known

    def _known_producer(self, transactional_id: str) -> Producer:
        known = self.producers.wake(transactional_id)
        if known is None:
            raise InvariantViolation(f"transactional id {transactional_id!r} is not known")
        return known

    def _fold_over(self, transaction: Transaction, state: TransactionState) -> None:
        """A transaction has ended. A member that wrote it for a key has done its work."""
        producer = self.producers[transaction.transactional_id]
        self.changed.add(producer.transactional_id)
        producer.ending.pop(transaction.id, None)
        if transaction.id.number == producer.last_number:
            producer.last_state = state
        del self.transactions[transaction.id]
        if producer.membership is not None and not producer.is_busy and self._is_left(producer.membership):
            self._forget(producer.transactional_id)

    def _fold_prepare(
        self, producer: Producer, transaction: Transaction, entry: NewEntry, position: int
    ) -> None:
        self._list(transaction, entry.payload["partitions"])
        transaction.fence_epoch = entry.payload.get("fence", transaction.fence_epoch)
        if entry.payload.get("untold") and producer.identity == transaction.id[:2]:
            producer.must_abort = True
        self._end(producer, transaction, position)
        if entry.kind is Kind.PREPARE_ABORT:
            self._part(transaction, position)

    def _list(self, transaction: Transaction, partitions: Iterable[list[object]]) -> None:
        """Note the participants that a decision lists."""
        known = transaction.epochs
        listed = [TopicIdPartition._make(each) for each in partitions]
        transaction.epochs = {participant: known.get(participant, 0) for participant in listed}

    # -- joint groups ----------------------------------------------------------------------------------------

    def _fold_join(self, entry: NewEntry, position: int) -> None:
        transactional_id, timeout_ms = entry.payload["id"], entry.payload["timeout_ms"]
        invariant(transactional_id not in self.producers, "a member has a producer id of its own")
        group = self._fold_run(entry, self.left_behind(entry), position)
        producer = Producer(transactional_id, *entry.transaction[:2], timeout_ms)
        producer.membership = Membership(*(entry.payload[name] for name in Membership._fields))
        producer.updated_ms = entry.payload["at_ms"]
        producer.is_durable = entry.payload["durable"]
        self.producers[transactional_id] = producer
        group.members.add(transactional_id)
        self.changed.add(transactional_id)

    def _fold_run(self, entry: NewEntry, left: Iterable[Producer], position: int) -> JointGroup:
        """The group of an entry, whose run may be a new one, and which leaves these members behind."""
        name, run = entry.payload["group"], entry.payload["run"]
        group = self.groups.get(name)
        if group is None:
            group = self.groups[name] = JointGroup(name)
        if run != group.run:
            group.replace_run(run)
        self.changed_groups.add(name)
        for member in left:
            self._leave(member, position)
        return group

    def _leave(self, member: Producer, position: int) -> None:
        """A member is left behind: it is fenced, what it has open is aborted, and then it is forgotten."""
        self.changed.add(member.transactional_id)
        member.epoch = min(member.epoch + 1, MAX_EPOCH + 1)
        if member.current is not None:
            self._fence_off(member, member.current, member.epoch, position)
        elif not member.ending:
            self._forget(member.transactional_id)

    def _fold_joint_commit(self, entry: NewEntry, position: int) -> None:
        """One decision for the lead and all that are joined to it; it leaves all other attempts behind."""
        is_led = entry.transaction != NO_TRANSACTION or not entry.payload["joined"]
        invariant(is_led, "what is joined has a lead")
        decided = self.named(entry)
        invariant(len({each.id for each in decided}) == len(decided), "a transaction is committed once")
        left = self.left_behind(entry)
        discarded = {each.id for each in open_transactions(left)}
        for transaction in decided:
            state_after(transaction.state, Kind.PREPARE_COMMIT)
            invariant(transaction.id not in discarded, "what is committed is not left behind")
        group = self._fold_run(entry, left, position)
        group.decide(entry.payload["key"], entry.transaction, entry.payload["members"])
        if not decided:
            group.decided(entry.transaction, is_committed=True)
            return
        lead, *joined = decided
        self._fold_joined(lead, entry.payload["partitions"], position)
        for transaction, (_, partitions) in zip(joined, entry.payload["joined"], strict=True):
            self._fold_joined(transaction, partitions, position)
            transaction.lead = lead.id
        lead.joined = tuple(joined)

    def _fold_joined(self, transaction: Transaction, partitions: list[list[object]], position: int) -> None:
        transaction.state = state_after(transaction.state, Kind.PREPARE_COMMIT)
        self._list(transaction, partitions)
        self._end(self.producers[transaction.transactional_id], transaction, position)
        self.changed.add(transaction.transactional_id)

    def _part(self, lead: Transaction, position: int) -> None:
        """A joint commit is aborted after all: each of its transactions ends on its own."""
        for each in lead.joined:
            each.state = state_after(each.state, Kind.PREPARE_ABORT)
            each.fence_epoch, each.lead = lead.fence_epoch, None
            self._end(self.producers[each.transactional_id], each, position)
            self.changed.add(each.transactional_id)
        lead.joined = ()
        self._fold_decided(lead, is_committed=False)

    def _fold_decided(self, lead: Transaction, *, is_committed: bool) -> None:
        """The decision of a joint group, if this is the lead of one, is carried out or taken back."""
        group = self.groups.get(lead.group)
        if group is not None and lead.id in group.deciding.values():
            group.decided(lead.id, is_committed=is_committed)
            self.changed_groups.add(group.name)

    def _is_left(self, membership: Membership) -> bool:
        """Whether a member has nothing more to do: it wrote for a key, or its run is replaced."""
        group = self.groups.get(membership.group)
        return membership.key != NO_KEY or group is None or membership.run != group.run

    def _fold_forget_group(self, name: str) -> None:
        group = self.groups.get(name)
        members = sorted(group.members) if group is not None else ()
        for transactional_id in members:
            self._ensure_idle(transactional_id)
        for transactional_id in members:
            self._forget(transactional_id)
        self.groups.pop(name, None)
        self.changed_groups.add(name)
