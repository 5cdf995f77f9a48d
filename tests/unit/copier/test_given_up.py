"""A client that aborts, keeps its epoch, and gives the sequences of what it gave up to its next messages.

The model is librdkafka: up to five batches are under way, and a connection keeps their order. What was not
acknowledged when the client aborts is given up. It may arrive before the abort, after it, or never.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from faircopy.copier.fold import NO_FENCE, NO_RANK, NOTHING_FINISHED, ApplyOrder, PartitionState
from faircopy.copier.producers import ConflictingSequence, RejectedBatch
from faircopy.journal.entry import NOWHERE, Entry, Kind, TransactionId
from faircopy.wire.batch import read_header
from faircopy.wire.records import NewRecord, build_batch
from tests.many import many

PRODUCER_ID = 7
IN_FLIGHT_MAX = 5
ENTRY_BYTES = 100


class Sent(NamedTuple):
    """A batch: its first sequence, and its messages, each a number of its own."""

    sequence: int
    messages: tuple[int, ...]


class Broker:
    """One partition, and the transactions of one producer there."""

    def __init__(self) -> None:
        self._state = PartitionState()
        self._number = 1
        self.is_open = self.is_given_up = False
        self.written: list[int] = []

    def take(self, sent: Sent) -> bool:
        """Produce into the open transaction. Whether the client is told that the batch is written."""
        if not self.is_open or self.is_given_up:
            return False
        batch = build_batch(
            [NewRecord(b"%d" % message) for message in sent.messages],
            producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=sent.sequence, transactional=True,
        )  # fmt: skip
        header, state = read_header(batch), self._state
        try:
            seen = state.producer(PRODUCER_ID, 0).find_duplicate(header, batch)
        except ConflictingSequence:
            self.is_given_up = True
            return False
        except RejectedBatch:
            return False
        if seen is None:
            branch = state.branch(self._transaction)
            entry = self._entry(Kind.DRAFT, len(sent.messages), branch.head if branch else NOWHERE)
            state.fold_draft(entry, header, batch)
            self.written += sent.messages
        return True

    def commit(self) -> None:
        """End the open transaction. All that was written is in the log."""
        order = ApplyOrder(NOTHING_FINISHED, NO_RANK, self._transaction)
        self._state.fold_apply(self._entry(Kind.APPLY), order)
        self._next()

    def abort(self) -> None:
        """End the open transaction, if there is one: the producer keeps its epoch."""
        if self.is_open:
            fence_epoch = NO_FENCE if self.is_given_up else 0
            self._state.fold_discard(self._entry(Kind.DISCARD), fence_epoch, NOTHING_FINISHED)
            self._next()

    def _next(self) -> None:
        self._number += 1
        self.written.clear()
        self.is_open = self.is_given_up = False

    @property
    def _transaction(self) -> TransactionId:
        return TransactionId(PRODUCER_ID, 0, self._number)

    def _entry(self, kind: Kind, records: int = 0, previous: int = NOWHERE) -> Entry:
        return Entry(kind, self._state.position, ENTRY_BYTES, records, 0, previous, self._transaction, 0)


class Client:
    """A client, and what is under way from it: of this transaction, and before that what was given up."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._messages = 0
        self._next_sequence = 0
        self._under_way: deque[Sent] = deque()
        self._unacked: deque[Sent] = deque()
        self._meant: list[int] = []
        self._hears_nothing = False
        self.commits = 0

    def send(self, records: int) -> None:
        """Send a batch. The first one of a transaction adds the partition to it."""
        if len(self._unacked) < IN_FLIGHT_MAX:
            self._broker.is_open = True
            sent = Sent(self._next_sequence, tuple(range(self._messages, self._messages + records)))
            self._messages += records
            self._next_sequence += records
            self._meant += sent.messages
            self._unacked.append(sent)
            self._under_way.append(sent)

    def arrive(self, *, is_acked: bool) -> None:
        """What is first under way arrives. If its ack is lost, so are those after it."""
        if self._under_way:
            sent = self._under_way.popleft()
            is_written = self._broker.take(sent)
            self._hears_nothing |= not is_acked
            if is_written and not self._hears_nothing and self._unacked and self._unacked[0] == sent:
                self._unacked.popleft()

    def connect(self) -> None:
        """Send what is not acknowledged again, over a new connection. What is under way is lost."""
        self._hears_nothing = False
        self._under_way = deque(self._unacked)

    def abort(self) -> None:
        """Give up what is not acknowledged. What is under way stays so."""
        if self._unacked:
            self._next_sequence = self._unacked[0].sequence
        self._unacked.clear()
        self._end(self._broker.abort)

    def commit(self) -> None:
        """Wait for all acks, and commit; abort if they don't come."""
        for _ in range(2):
            while self._under_way:
                self.arrive(is_acked=True)
            if self._unacked:
                self.connect()
        if self._unacked or self._broker.is_given_up:
            self.abort()
        elif self._meant:
            assert self._broker.written == self._meant
            self.commits += 1
            self._end(self._broker.commit)

    def _end(self, end: Callable[[], None]) -> None:
        end()
        self._meant.clear()
        self._hears_nothing = False


STEPS = st.one_of(
    st.integers(1, 2),  # a batch with so many messages
    st.sampled_from(["arrive", "arrive", "arrive unheard", "connect", "abort", "commit"]),
)


@given(many(STEPS, 60))
def test_a_commit_has_what_its_client_means_and_nothing_that_was_given_up(steps: list[int | str]) -> None:
    client = Client(Broker())
    for step in steps:
        match step:
            case int():
                client.send(step)
            case "arrive" | "arrive unheard":
                client.arrive(is_acked=step == "arrive")
            case "connect":
                client.connect()
            case "abort":
                client.abort()
            case "commit":
                client.commit()


@given(st.integers(1, 7), st.integers(0, 5), st.booleans())
def test_the_transaction_after_an_abort_commits_at_once(sent: int, heard: int, is_written: bool) -> None:
    """Nothing is under way any more, whatever was written or acknowledged before."""
    client = Client(Broker())
    for number in range(sent):
        client.send(1)
        if is_written:
            client.arrive(is_acked=number < heard)
    client.connect()
    client.abort()
    client.connect()
    client.send(2)
    client.commit()
    assert client.commits == 1
