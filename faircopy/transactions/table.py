"""The lives of transactions: the fold of a metadata journal, and every transition it knows.

Pure. A request is checked by a `decide_*` function, which raises or returns the entries to append; appending an entry
folds it with `fold`. Running and recovering differ only in where the entries come from.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from faircopy.errors import FaircopyError, invariant
from faircopy.journal.entry import Kind, TransactionId
from faircopy.journal.identity import TopicIdPartition
from faircopy.transactions.metadata_entry import Payload
from faircopy.wire.error_codes import ErrorCode

NOBODY = -1
NEVER_MS = 1 << 62
MAX_EPOCH = 32766  # the last one is kept back, as Kafka does, so that a fence can always be one higher


class Phase(StrEnum):
    """Where a transaction is in its life; values as Kafka's tools show them."""

    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMMITTED = "CompleteCommit"
    ABORTED = "CompleteAbort"


COMMIT_PHASES = (Phase.PREPARE_COMMIT, Phase.COMMITTED)
ABORT_PHASES = (Phase.PREPARE_ABORT, Phase.ABORTED)

# What may follow what. PREPARE_COMMIT turns into PREPARE_ABORT only in recovery, when a participant lost its drafts
# before anything was acked (DESIGN, section 4). A fence aborts what is open: it is one entry, since a crash between two
# would leave a producer whose transaction is aborted, and who may commit the rest of it.
TRANSITIONS: dict[tuple[Phase | None, Kind], Phase] = {
    (None, Kind.BEGIN): Phase.ONGOING,
    (Phase.ONGOING, Kind.ADD): Phase.ONGOING,
    (Phase.ONGOING, Kind.PREPARE_COMMIT): Phase.PREPARE_COMMIT,
    (Phase.ONGOING, Kind.PREPARE_ABORT): Phase.PREPARE_ABORT,
    (Phase.ONGOING, Kind.FENCE): Phase.PREPARE_ABORT,
    (Phase.PREPARE_COMMIT, Kind.PREPARE_ABORT): Phase.PREPARE_ABORT,
    (Phase.PREPARE_COMMIT, Kind.COMMITTED): Phase.COMMITTED,
    (Phase.PREPARE_ABORT, Kind.ABORTED): Phase.ABORTED,
}


def phase_behind(phase: Phase | None, kind: Kind) -> Phase:
    """Where an entry leads to; None is where there was no transaction yet."""
    following = TRANSITIONS.get((phase, kind))
    invariant(following is not None, f"no transition from {phase} by {kind!r}")
    assert following is not None
    return following


class TransactionRefused(FaircopyError):
    """A request does not fit the state of its transactional id; nothing was changed."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class Transaction:
    """One transaction as its coordinator sees it. `fence_epoch` is for the DISCARDs of one that is aborted."""

    __slots__ = (
        "fence_epoch",
        "id",
        "incarnations",
        "phase",
        "prepared_position",
        "started_ms",
        "timeout_ms",
        "transactional_id",
    )

    def __init__(self, transaction: TransactionId, transactional_id: str, timeout_ms: int, started_ms: int) -> None:
        self.id = transaction
        self.transactional_id = transactional_id
        self.timeout_ms = timeout_ms
        self.started_ms = started_ms
        self.phase = Phase.ONGOING
        self.incarnations: dict[TopicIdPartition, int] = {}
        self.prepared_position = -1
        self.fence_epoch = transaction.producer_epoch

    @property
    def deadline_ms(self) -> int:
        """When it times out, by the steady clock."""
        return self.started_ms + self.timeout_ms

    @property
    def participants(self) -> list[TopicIdPartition]:
        return list(self.incarnations)


class Producer:
    """One transactional id: its producer id and epoch, and the transactions that are not over.

    `pardoned_epoch` is that of an instance which may still ask for the newest epoch: it has asked before and may not
    have heard the answer, or a timeout has fenced it and no other instance has come since (KIP-360, KIP-588).

    `must_abort`: the broker has aborted the newest instance's transaction, or may have lost it, and the instance does
    not know. It gets nothing done until it has aborted, too: else it could commit the rest as if it were the whole.
    """

    __slots__ = (
        "current",
        "ending",
        "epoch",
        "last_number",
        "last_phase",
        "must_abort",
        "pardoned_epoch",
        "producer_id",
        "timeout_ms",
        "transactional_id",
        "updated_ms",
    )

    def __init__(self, transactional_id: str, producer_id: int, epoch: int, timeout_ms: int) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.epoch = epoch
        self.timeout_ms = timeout_ms
        self.pardoned_epoch = NOBODY
        self.must_abort = False
        self.current: Transaction | None = None
        self.ending: dict[TransactionId, Transaction] = {}
        self.last_phase: Phase | None = None
        self.last_number = -1
        self.updated_ms = 0

    @property
    def group(self) -> str:
        return group_of(self.transactional_id)

    @property
    def identity(self) -> tuple[int, int]:
        return self.producer_id, self.epoch

    @property
    def phase_name(self) -> str:
        """The state as Kafka's tools show it."""
        if self.current is not None:
            return self.current.phase.value
        if self.ending:
            return next(reversed(self.ending.values())).phase.value
        return self.last_phase.value if self.last_phase is not None else "Empty"


class NewEntry(NamedTuple):
    """An entry that a decision wants appended."""

    kind: Kind
    transaction: TransactionId
    payload: Payload


def group_of(transactional_id: str) -> str:
    """G: the part before the first `/`, or the whole id (DESIGN, section 2)."""
    return transactional_id.split("/", 1)[0]


class TransactionTable:
    """The state of one metadata journal."""

    def __init__(self) -> None:
        self.producers: dict[str, Producer] = {}
        self.transactions: dict[TransactionId, Transaction] = {}
        self.changed: set[str] = set()
        self._first_deadline_ms = 0

    # -- the fold ------------------------------------------------------------------------------------------------

    def fold(self, entry: NewEntry, position: int) -> None:
        """Take in an entry that stands at `position` of the journal."""
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
            case Kind.DOUBT:
                self._fold_doubt()
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
                fresh.ending, fresh.last_phase = producer.ending, producer.last_phase
            self.producers[transactional_id] = fresh
        else:
            invariant(epoch >= producer.epoch, "epochs of a producer only grow")
            producer.epoch = epoch
            producer.timeout_ms = entry.payload["timeout_ms"]
            producer.must_abort = False
        self.producers[transactional_id].pardoned_epoch = entry.payload["pardoned"]
        self.producers[transactional_id].updated_ms = entry.payload["at_ms"]
        if entry.payload["told"]:
            self.producers[transactional_id].last_phase = Phase.ABORTED
        self.changed.add(transactional_id)

    def _fence_off(self, producer: Producer, transaction: Transaction, fence_epoch: int, position: int) -> None:
        """Abort the open transaction of an instance that is fenced."""
        transaction.phase = phase_behind(transaction.phase, Kind.FENCE)
        transaction.fence_epoch = fence_epoch
        self._end(producer, transaction, position)

    def _end(self, producer: Producer, transaction: Transaction, position: int) -> None:
        """A transaction is decided, by the entry at `position`."""
        transaction.prepared_position = position
        if producer.current is transaction:
            producer.current = None
        producer.ending[transaction.id] = transaction
        producer.last_phase = transaction.phase

    def _fold_doubt(self) -> None:
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
        transaction.phase = phase_behind(None, entry.kind)
        producer.current = self.transactions[entry.transaction] = transaction
        self._first_deadline_ms = min(self._first_deadline_ms, transaction.deadline_ms)
        self.changed.add(producer.transactional_id)

    def _fold_step(self, entry: NewEntry, position: int) -> None:
        transaction = self.transactions[entry.transaction]
        following = phase_behind(transaction.phase, entry.kind)
        producer = self.producers[transaction.transactional_id]
        self.changed.add(producer.transactional_id)
        transaction.phase = following
        match entry.kind:
            case Kind.ADD:
                for topic_id, partition, incarnation in entry.payload["partitions"]:
                    transaction.incarnations[TopicIdPartition(topic_id, partition)] = incarnation
            case Kind.PREPARE_COMMIT | Kind.PREPARE_ABORT:
                self._fold_prepare(producer, transaction, entry, position)
            case Kind.COMMITTED | Kind.ABORTED:
                producer.ending.pop(transaction.id, None)
                if transaction.id.number == producer.last_number:
                    producer.last_phase = following
                del self.transactions[transaction.id]

    def _fold_prepare(self, producer: Producer, transaction: Transaction, entry: NewEntry, position: int) -> None:
        known = transaction.incarnations
        listed = [TopicIdPartition._make(each) for each in entry.payload["partitions"]]
        transaction.incarnations = {participant: known.get(participant, 0) for participant in listed}
        transaction.fence_epoch = entry.payload.get("fence", transaction.fence_epoch)
        if entry.payload.get("untold") and producer.identity == transaction.id[:2]:
            producer.must_abort = True
        self._end(producer, transaction, position)

    # -- decisions -----------------------------------------------------------------------------------------------

    def producer_of(self, transactional_id: str, producer_id: int, epoch: int, fenced: ErrorCode) -> Producer:
        """The transactional id's producer, if the caller is its newest instance. `fenced` is the code for a zombie."""
        producer = self.producers.get(transactional_id)
        if producer is None or producer.producer_id != producer_id:
            raise TransactionRefused(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                f"transactional id {transactional_id!r} is not that of producer {producer_id}: call InitProducerId",
            )
        if producer.epoch != epoch:
            raise TransactionRefused(
                fenced,
                f"producer epoch {epoch} of transactional id {transactional_id!r} is fenced; the newest is "
                f"{producer.epoch}",
            )
        return producer

    def ensure_told(self, producer: Producer) -> None:
        """Raise unless the instance knows of all that became of its transactions."""
        if producer.must_abort:
            raise TransactionRefused(
                ErrorCode.TRANSACTION_ABORTABLE,
                f"the broker was restarted and has aborted the open transaction of {producer.transactional_id!r}: "
                f"abort it, and begin it again",
            )

    def decide_add(
        self, producer: Producer, partitions: list[tuple[TopicIdPartition, int]], number: int, now_ms: int
    ) -> list[NewEntry]:
        """Entries that add (partition, incarnation) pairs; the first ones begin transaction `number`."""
        self.ensure_told(producer)
        entries = []
        if producer.current is None:
            transaction = TransactionId(producer.producer_id, producer.epoch, number)
            begin = {"id": producer.transactional_id, "timeout_ms": producer.timeout_ms, "at_ms": now_ms}
            entries.append(NewEntry(Kind.BEGIN, transaction, begin))
            known: dict[TopicIdPartition, int] = {}
        else:
            transaction, known = producer.current.id, producer.current.incarnations
        missing = [[*participant, incarnation] for participant, incarnation in partitions if participant not in known]
        if missing:
            entries.append(NewEntry(Kind.ADD, transaction, {"partitions": missing}))
        return entries

    def decide_end(self, producer: Producer, now_ms: int, *, commit: bool) -> list[NewEntry]:
        """The entry that ends the open transaction; none if an equal request has ended it before."""
        if producer.must_abort:
            return [self._decide_told(producer, now_ms, commit=commit)]
        if producer.current is not None:
            transaction = producer.current
            if commit:
                return [prepare_commit(transaction)]
            return [prepare_abort(transaction, producer.epoch)]
        if producer.last_phase in (COMMIT_PHASES if commit else ABORT_PHASES):
            return []
        asked = "commit" if commit else "abort"
        raise TransactionRefused(
            ErrorCode.INVALID_TXN_STATE,
            f"transactional id {producer.transactional_id!r} has no open transaction to {asked}; "
            f"its state is {producer.phase_name}",
        )

    def _decide_told(self, producer: Producer, now_ms: int, *, commit: bool) -> NewEntry:
        """An abort is what we wait for. A commit may be the last one's, repeated, or that of one which was lost."""
        if commit and producer.last_phase in COMMIT_PHASES:
            raise TransactionRefused(
                ErrorCode.INVALID_TXN_STATE,
                f"the broker was restarted after a loss of power, and can't tell which transaction "
                f"{producer.transactional_id!r} wants to commit: its last one is committed, a later one is lost",
            )
        if commit:
            self.ensure_told(producer)
        # From now on an abort that is asked for again is a repeated one.
        fence = self.decide_fence(producer.transactional_id, *producer.identity, producer.timeout_ms, now_ms)
        return fence._replace(payload=fence.payload | {"told": True})

    def decide_fence(
        self, transactional_id: str, producer_id: int, epoch: int, timeout_ms: int, now_ms: int, pardoned: int = NOBODY
    ) -> NewEntry:
        """The entry that gives a transactional id its next producer id and epoch and aborts what is open, or says that
        its instance knows all.
        """
        payload = {
            "id": transactional_id, "timeout_ms": timeout_ms, "pardoned": pardoned, "at_ms": now_ms, "told": False,
        }  # fmt: skip
        return NewEntry(Kind.FENCE, TransactionId(producer_id, epoch, -1), payload)

    def expired(self, now_ms: int) -> list[Transaction]:
        """Open transactions past their timeout. Prepared ones never expire."""
        if now_ms <= self._first_deadline_ms:
            return []
        current = [producer.current for producer in self.producers.values() if producer.current is not None]
        expired = [transaction for transaction in current if now_ms > transaction.deadline_ms]
        # Nobody needs to look again before the next one is due; what expired is looked at until it is ended.
        self._first_deadline_ms = min((transaction.deadline_ms for transaction in current), default=NEVER_MS)
        return expired

    def forgettable(self, now_ms: int, idle_ms: int) -> list[str]:
        """Transactional ids that have been idle for this long."""
        return [
            transactional_id
            for transactional_id, producer in self.producers.items()
            if not producer.current and not producer.ending and now_ms - producer.updated_ms > idle_ms
        ]


def prepare_commit(transaction: Transaction) -> NewEntry:
    """The entry that decides for commit, once it and every participant's PREPARED are durable (I5)."""
    return NewEntry(Kind.PREPARE_COMMIT, transaction.id, {"partitions": transaction.participants})


def prepare_abort(transaction: Transaction, fence_epoch: int, *, untold: bool = False) -> NewEntry:
    """The entry that decides for abort; `untold` if its producer did not ask for it, and is not fenced either."""
    payload = {"partitions": transaction.participants, "fence": fence_epoch, "untold": untold}
    return NewEntry(Kind.PREPARE_ABORT, transaction.id, payload)


def next_epoch(producer: Producer) -> int | None:
    """The epoch that fences the producer's present instance; None if a new producer id is needed."""
    return producer.epoch + 1 if producer.epoch < MAX_EPOCH else None
