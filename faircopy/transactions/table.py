"""The lives of transactions: the fold of a metadata journal. Pure.

Running and recovering differ only in where the entries come from.
"""

from __future__ import annotations

from faircopy.errors import invariant
from faircopy.journal.entry import Kind, TransactionId
from faircopy.journal.identity import TopicIdPartition
from faircopy.transactions.state import TransactionState, state_after
from faircopy.transactions.transaction import MAX_EPOCH, NewEntry, Producer, Transaction


class TransactionTable:
    """The state of one metadata journal, written by its fold only. `changed` is for the next checkpoint."""

    def __init__(self) -> None:
        self.producers: dict[str, Producer] = {}
        self.transactions: dict[TransactionId, Transaction] = {}
        self.changed: set[str] = set()

    # -- the fold --------------------------------------------------------------------------------------------

    def fold(self, entry: NewEntry, position: int) -> None:
        """Fold the entry at `position` of the journal."""
        match entry.kind:
            case Kind.FENCE:
                self._fold_fence(entry, position)
            case Kind.FORGET:
                producer = self.producers.pop(entry.payload["id"], None)
                self.changed.add(entry.payload["id"])
                invariant(
                    producer is None or not (producer.current or producer.ending),
                    "a busy id is not forgotten",
                )
            case Kind.BEGIN:
                self._fold_begin(entry)
            case Kind.UNCLEAN:
                self._fold_unclean()
            case _:
                self._fold_step(entry, position)

    def _fold_fence(self, entry: NewEntry, position: int) -> None:
        transactional_id = entry.payload["id"]
        producer = self.producers.get(transactional_id)
        producer_id, epoch, _ = entry.transaction
        if producer is not None and producer.current is not None:
            is_same = producer.producer_id == producer_id
            self._fence_off(producer, producer.current, epoch if is_same else MAX_EPOCH + 1, position)
        if producer is None or producer.producer_id != producer_id:
            fresh = Producer(transactional_id, producer_id, epoch, entry.payload["timeout_ms"])
            if producer is not None:
                fresh.ending, fresh.last_state = producer.ending, producer.last_state
                fresh.last_number = producer.last_number
            self.producers[transactional_id] = fresh
        else:
            invariant(epoch >= producer.epoch, "epochs of a producer only grow")
            producer.epoch = epoch
            producer.timeout_ms = entry.payload["timeout_ms"]
            producer.must_abort = False
        self.producers[transactional_id].previous_epoch = entry.payload["pardoned"]
        self.producers[transactional_id].updated_ms = entry.payload["at_ms"]
        if entry.payload["told"]:
            self.producers[transactional_id].last_state = TransactionState.ABORTED
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

    def _fold_unclean(self) -> None:
        for producer in self.producers.values():
            producer.must_abort = True
        self.changed |= set(self.producers)

    def _fold_begin(self, entry: NewEntry) -> None:
        producer = self.producers[entry.payload["id"]]
        invariant(producer.current is None, "a producer has one transaction open at a time")
        invariant(entry.transaction.number > producer.last_number, "I4: numbers of a producer only grow")
        producer.last_number = entry.transaction.number
        producer.updated_ms = entry.payload["at_ms"]
        transaction = Transaction(
            entry.transaction, producer.transactional_id, entry.payload["timeout_ms"], entry.payload["at_ms"]
        )
        transaction.state = state_after(None, entry.kind)
        producer.current = self.transactions[entry.transaction] = transaction
        self.changed.add(producer.transactional_id)

    def _fold_step(self, entry: NewEntry, position: int) -> None:
        transaction = self.transactions[entry.transaction]
        following = state_after(transaction.state, entry.kind)
        producer = self.producers[transaction.transactional_id]
        self.changed.add(producer.transactional_id)
        transaction.state = following
        match entry.kind:
            case Kind.ADD:
                for topic_id, partition, leader_epoch in entry.payload["partitions"]:
                    transaction.epochs[TopicIdPartition(topic_id, partition)] = leader_epoch
            case Kind.PREPARE_COMMIT | Kind.PREPARE_ABORT:
                self._fold_prepare(producer, transaction, entry, position)
            case Kind.COMMITTED | Kind.ABORTED:
                producer.ending.pop(transaction.id, None)
                if transaction.id.number == producer.last_number:
                    producer.last_state = following
                del self.transactions[transaction.id]

    def _fold_prepare(
        self, producer: Producer, transaction: Transaction, entry: NewEntry, position: int
    ) -> None:
        known = transaction.epochs
        listed = [TopicIdPartition._make(each) for each in entry.payload["partitions"]]
        transaction.epochs = {participant: known.get(participant, 0) for participant in listed}
        transaction.fence_epoch = entry.payload.get("fence", transaction.fence_epoch)
        if entry.payload.get("untold") and producer.identity == transaction.id[:2]:
            producer.must_abort = True
        self._end(producer, transaction, position)
