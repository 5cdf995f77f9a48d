"""The producers of a partition fall asleep with a checkpoint: as the rows that it stores."""

from __future__ import annotations

import struct
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.copier import fold
from faircopy.copier.checkpoint import (
    NO_CHECKPOINT,
    changes_of,
    restore,
    take_changed,
)
from faircopy.copier.fold import PartitionState
from faircopy.copier.producer_row import decode_producer, encode_producer, last_position_in, outcomes_in
from faircopy.copier.producer_table import ProducerTable
from faircopy.copier.producers import DROPPED, NO_FINGERPRINT, BranchOutcome, ProducerState, SeenBatch
from faircopy.errors import InvariantViolation
from faircopy.journal.entry import TransactionId
from faircopy.storage.state_store import Put
from tests.known_transactions import known_transactions
from tests.many import many
from tests.unit.copier.odd_entries import OddEntries, Step, content, steps

IDENTITY = bytes(20)
INT32, INT64 = st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-(1 << 63), (1 << 63) - 1)
EPOCHS = st.integers(-1, (1 << 15) - 1)
PRODUCER_ID = 7
TRANSACTIONS = st.builds(TransactionId, st.just(PRODUCER_ID), EPOCHS, INT64)
PRODUCERS = st.builds(
    ProducerState,
    EPOCHS,
    st.lists(st.builds(SeenBatch, INT32, INT32, INT64, st.just(NO_FINGERPRINT)), max_size=5).map(tuple),
    st.integers(0, (1 << 64) - 1),
    st.lists(st.builds(BranchOutcome, TRANSACTIONS, st.booleans(), INT64), max_size=300),
    is_forgotten=st.booleans(),
    follows_abort=st.just(False),
) | st.builds(
    ProducerState,
    EPOCHS,
    st.lists(st.builds(SeenBatch, INT32, INT32, INT64, st.integers(0, (1 << 32) - 1)), max_size=5).map(tuple),
    st.integers(0, (1 << 64) - 1),
    st.lists(st.builds(BranchOutcome, TRANSACTIONS, st.booleans(), INT64), max_size=300),
    is_forgotten=st.booleans(),
    follows_abort=st.just(True),
)


@given(PRODUCERS)
def test_a_row_has_all_of_a_producer(producer: ProducerState) -> None:
    row = encode_producer(producer)
    assert content(decode_producer(PRODUCER_ID, row)) == content(producer)
    assert outcomes_in(row) == len(producer.outcomes)
    assert last_position_in(row) == producer.last_position


def test_the_bytes_of_a_row() -> None:
    applied = BranchOutcome(TransactionId(PRODUCER_ID, 2, 3), is_applied=True, rank=4)
    discarded = BranchOutcome(TransactionId(PRODUCER_ID, 2, 5), is_applied=False, rank=fold.NO_RANK)
    producer = ProducerState(2, (SeenBatch(6, 7, 8),), 9, (applied, discarded), is_forgotten=True)
    expected = "0002 03 000000000000000900000006 00000007 0000000000000008"
    expected += "0002 0000000000000003 01 00000000000000040002 0000000000000005 00 ffffffffffffffff"
    assert encode_producer(producer) == bytes.fromhex(expected)
    after_abort = ProducerState(2, (SeenBatch(6, 7, DROPPED, 5),), 9, follows_abort=True)
    expected = "0002 12 000000000000000900000006 00000007 fffffffffffffffe 00000005"
    assert encode_producer(after_abort) == bytes.fromhex(expected)


@given(PRODUCERS, st.integers(1, 15))
def test_what_is_no_row_is_refused_when_it_is_read(producer: ProducerState, cut: int) -> None:
    row = encode_producer(producer)
    with pytest.raises(struct.error):
        ProducerTable().restore(PRODUCER_ID, row[:-cut])


@pytest.mark.parametrize("most", [1, fold.PRODUCERS_MAX])
@given(many(st.one_of(steps(), st.none()), 60, least=1))
def test_whether_producers_sleep_does_not_count(most: int, found: list[Step | None]) -> None:
    """Checkpoints, and starts from them, between any two entries."""
    with mock.patch.object(fold, "PRODUCERS_MAX", most):
        whole, entries = PartitionState(), OddEntries()
        slept, stored = PartitionState(), Stored()
        for step in found:
            if step is None:
                slept.producers.sleep()
                assert content_of(slept) == content_of(whole)
                stored.take(slept)
                slept = stored.state(slept)
            else:
                entry, payload = entries.next(step)
                effects = [outcome_of(state, entry, payload) for state in (whole, slept)]
                assert effects[0] == effects[1]
                if effects[0] != "refused":
                    entries.accepted(entry)
            assert content_of(slept) == content_of(whole)
            assert whole.outcomes == len(known_transactions(whole)) - len(whole.undecided)


class Stored:
    """What checkpoints have stored."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[bytes, bytes]] = {"producers": {}, "transactions": {}}

    def take(self, state: PartitionState) -> None:
        """Make a checkpoint."""
        for change in changes_of(IDENTITY, state, take_changed(state)):
            assert not hasattr(change, "prefix") and not hasattr(change, "first")
            if isinstance(change, Put):
                self.tables[change.table][change.key] = change.value
            else:
                self.tables[change.table].pop(change.key, None)

    def state(self, of: PartitionState) -> PartitionState:
        """The state as the next start finds it."""
        checkpoint = NO_CHECKPOINT._replace(
            position=of.position,
            start_offset=of.start_offset,
            next_offset=of.next_offset,
            forgotten_producer_id=of.forgotten_producer_id,
            epochs=of.epochs,
        )
        rows = (sorted(self.tables[name].items()) for name in ("producers", "transactions"))
        return restore(checkpoint, *rows)


def content_of(state: PartitionState) -> dict[str, object]:
    """All that is in a state, and that the next checkpoint does not take out."""
    return {name: content(each) for name, each in vars(state).items() if not name.startswith("changed_")}


def outcome_of(state: PartitionState, entry: object, payload: bytes) -> object:
    """The effect of an entry, or that it was refused."""
    try:
        return state.fold(entry, payload)  # type: ignore[arg-type]
    except InvariantViolation:
        return "refused"


def test_outcomes_are_forgotten_in_the_order_in_which_they_came() -> None:
    """Whoever only aborts has thousands of them until his coordinator's journal is fsynced."""
    transactions = [TransactionId(PRODUCER_ID, 0, number) for number in (1, 5, 3, 7)]
    producer = ProducerState(0, (), 0, [BranchOutcome(each, False, -1) for each in transactions])
    assert producer.forget_outcomes(0) == 0
    assert producer.forget_outcomes(4) == 1
    assert producer.forget_outcomes(5) == 2
    assert list(producer.outcomes) == transactions[3:]
