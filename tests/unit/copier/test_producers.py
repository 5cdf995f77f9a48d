"""Which batches of a producer a partition takes: in sequence from 0, each once, and none for another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.copier.fold import NO_FENCE, PRODUCERS_MAX, PartitionState
from faircopy.copier.producers import (
    UNKNOWN_OFFSET,
    OutOfOrderSequence,
    ProducerState,
    SeenBatch,
    StaleDuplicate,
    StaleEpoch,
    UnknownProducer,
)
from faircopy.journal.entry import NOWHERE, Entry, Kind, TransactionId
from faircopy.wire.batch import BatchHeader
from tests.many import many

PRODUCER_ID = 7


def header(sequence: int, *, epoch: int = 0, records: int = 1, producer_id: int = PRODUCER_ID) -> BatchHeader:
    return BatchHeader(0, 49, 0, 2, 0, 0, records - 1, 0, 0, producer_id, epoch, sequence, records)


def entry(kind: Kind, position: int, epoch: int = 0) -> Entry:
    transaction = TransactionId(PRODUCER_ID, epoch, 1)
    return Entry(kind, position, 100, 1, 0, NOWHERE, transaction, 0)


class Fold:
    """A partition's state, to which batches and decisions are given as requests would."""

    def __init__(self) -> None:
        self.state = PartitionState()
        self._position = 0

    def _next(self, kind: Kind, epoch: int = 0) -> Entry:
        self._position += 100
        return entry(kind, self._position, epoch)

    def send(self, sequence: int, **fields: int) -> SeenBatch | None:
        """Take a batch, unless it is a duplicate. Raises RejectedBatch."""
        sent = header(sequence, **fields)
        duplicate = self.state.producer(sent.producer_id, sent.producer_epoch).find_duplicate(sent, b"")
        if duplicate is None:
            self.state.fold_plain(self._next(Kind.PLAIN), sent, b"")
        return duplicate

    def discard(self, fence_epoch: int, epoch: int = 0) -> None:
        self.state.fold_discard(self._next(Kind.DISCARD, epoch), fence_epoch, -1)


def test_an_unknown_producer_begins_at_0() -> None:
    """The batch before this one may have been refused, and is sent again: it must find its place."""
    fold = Fold()
    with pytest.raises(UnknownProducer):
        fold.send(1)
    assert fold.send(0) is None
    assert fold.send(1) is None


def test_a_gap_after_what_was_written_is_not_taken_for_an_unknown_producer() -> None:
    fold = Fold()
    fold.send(0)
    for fields in ({}, {"epoch": 1}):
        with pytest.raises(OutOfOrderSequence) as caught:
            fold.send(2, **fields)
        assert not isinstance(caught.value, UnknownProducer)


def test_a_fenced_producer_begins_at_0() -> None:
    fold = Fold()
    fold.send(0)
    fold.discard(fence_epoch=1)
    with pytest.raises(StaleEpoch):
        fold.send(1)
    with pytest.raises(OutOfOrderSequence):
        fold.send(1, epoch=1)
    with pytest.raises(OutOfOrderSequence):
        fold.send((1 << 31) - 1, epoch=1)
    assert fold.send(0, epoch=1) is None


def test_a_producer_that_only_took_part_begins_at_0() -> None:
    """An aborted transaction that wrote nothing here says nothing of sequences."""
    fold = Fold()
    fold.discard(fence_epoch=0)
    with pytest.raises(OutOfOrderSequence):
        fold.send(3)
    assert fold.send(0) is None


def test_after_a_crash_any_sequence_is_next_and_none_before_it_counts_as_written() -> None:
    """The coordinator aborted what a crash had taken.

    What the producer sends next may start at any sequence. But if that was refused, and the one after it
    taken, a retry must not be told that it is a duplicate.
    """
    fold = Fold()
    fold.send(0)
    fold.discard(fence_epoch=NO_FENCE)
    assert fold.send(5) is None
    with pytest.raises(OutOfOrderSequence):
        fold.send(4)
    assert fold.send(5) is not None
    assert fold.send(6) is None


def test_what_was_written_long_ago_is_a_duplicate() -> None:
    fold = Fold()
    for sequence in range(10):
        fold.send(sequence)
    with pytest.raises(StaleDuplicate):
        fold.send(2)


def test_a_forgotten_producer_goes_on_and_an_unknown_one_does_not() -> None:
    """Partitions remember so many producers only; one that was forgotten may come with any sequence."""
    fold = Fold()
    for producer_id in range(PRODUCERS_MAX + 1):
        fold.send(0, producer_id=producer_id)
    assert 0 not in fold.state.producers
    assert fold.send(1, producer_id=0) is None
    with pytest.raises(OutOfOrderSequence):
        fold.send(1, producer_id=PRODUCERS_MAX + 1)


@given(many(st.integers(0, 4), 40), st.booleans())
def test_whatever_is_refused_or_repeated_each_batch_stands_once_and_in_order(
    lost: list[int], crashed: bool
) -> None:
    """A client has five batches in flight, of which any may be refused for another reason.

    It sends again what was not taken, and believes what it is told.
    """
    producer = ProducerState(0)
    if crashed:
        producer.forget_sequences()
    written: list[int] = []
    believed: set[int] = set()
    waiting = list(range(20)) if not crashed else list(range(10, 30))
    for drop in [*lost, *([9] * 10)]:
        for number, sequence in enumerate(waiting[:5]):
            if number == drop:
                continue
            try:
                if producer.find_duplicate(header(sequence), b"") is None:
                    producer.note(0, SeenBatch(sequence, sequence, UNKNOWN_OFFSET), 0)
                    written.append(sequence)
            except StaleDuplicate:
                pass
            except OutOfOrderSequence:
                continue
            believed.add(sequence)
        waiting = [sequence for sequence in waiting if sequence not in believed]
    assert set(written) == believed
    assert written == sorted(set(written))
