"""A producer older than a topic may begin there anywhere, but no batch overtakes one that was refused."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from faircopy.api.produce.refused_first import KNOWN_MAX, RefusedFirst
from faircopy.copier.producers import (
    UNKNOWN_OFFSET,
    OutOfOrderSequence,
    ProducerState,
    SeenBatch,
    UnknownProducer,
)
from faircopy.wire.batch import BatchHeader
from tests.many import many


def header(sequence: int, *, producer_id: int = 7, epoch: int = 0) -> BatchHeader:
    return BatchHeader(0, 49, 0, 2, 0, 0, 0, 0, 0, producer_id, epoch, sequence, 1)


class Admitted:
    """One partition of a topic that was made again: what it takes of one producer."""

    def __init__(self) -> None:
        self.refused = RefusedFirst()
        self.producer = ProducerState(0)
        self.written: list[int] = []

    def take(self, sequence: int) -> bool:
        """Whether a batch is written now, or was before."""
        producer, sent = self.producer, header(sequence)
        try:
            try:
                duplicate = producer.find_duplicate(sent, b"")
            except UnknownProducer:
                if not self.refused.may_begin("t", 0, sent):
                    raise
                duplicate = None
        except OutOfOrderSequence:
            self.refused.note("t", 0, sent)
            return False
        if duplicate is None:
            self.producer.note(0, SeenBatch(sequence, sequence, UNKNOWN_OFFSET), 0)
            self.written.append(sequence)
        return True


@given(many(st.integers(0, 6), 40))
def test_no_batch_overtakes_one_that_was_refused(lost: list[int]) -> None:
    """Five are in flight, of which any may be refused for another reason, such as a topic that is not there.

    librdkafka counts all before one that was taken as acknowledged.
    """
    admitted, first = Admitted(), 100
    waiting = list(range(first, first + 20))
    for drop in [*lost, *([9] * 10)]:
        taken = []
        for number, sequence in enumerate(waiting[:5]):
            if number == drop:
                admitted.refused.note("t", 0, header(sequence))
            elif admitted.take(sequence):
                taken.append(sequence)
        assert taken == waiting[: len(taken)]
        waiting = waiting[len(taken) :]
    assert admitted.written == list(range(first, first + 20))


def test_who_has_begun_elsewhere_is_not_told_that_what_was_before_is_written() -> None:
    admitted = Admitted()
    assert admitted.take(5)
    assert not admitted.take(4)
    assert admitted.take(6)


def test_what_was_refused_is_known_of_each_producer_epoch_and_partition() -> None:
    refused = RefusedFirst()
    refused.note("t", 0, header(5))
    for other in (header(9, producer_id=8), header(9, epoch=1)):
        assert refused.may_begin("t", 0, other)
    assert refused.may_begin("t", 1, header(9))
    assert refused.may_begin("u", 0, header(9))
    assert not refused.may_begin("t", 0, header(9))
    assert refused.may_begin("t", 0, header(5))


def test_little_is_known() -> None:
    refused = RefusedFirst()
    for producer_id in range(KNOWN_MAX + 1):
        refused.note("t", 0, header(5, producer_id=producer_id))
    assert refused.may_begin("t", 0, header(9, producer_id=0))
    assert not refused.may_begin("t", 0, header(9, producer_id=1))
    refused.note("t" * 250, 0, header(5))
    assert refused.may_begin("t" * 250, 0, header(9)), "no topic has such a name"
    refused.note("t", 0, header(3, producer_id=-1))
    refused.note_unchecked("t", 0, None)
    refused.note_unchecked("t", 0, memoryview(b"short"))
