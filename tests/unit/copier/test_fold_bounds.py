"""How many producers a partition remembers, when there are very many."""

from __future__ import annotations

import pytest

from faircopy.copier import fold
from faircopy.copier.fold import PartitionState
from faircopy.journal.entry import HEADER_BYTES, NOWHERE, Entry, Kind, TransactionId
from faircopy.wire.batch import read_header
from faircopy.wire.records import NewRecord, build_batch


def draft(state: PartitionState, producer_id: int) -> None:
    batch = build_batch(
        [NewRecord(b"v")], producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True
    )
    transaction = TransactionId(producer_id, 0, 1)
    length = HEADER_BYTES + len(batch)
    state.fold_draft(
        Entry(Kind.DRAFT, state.position, length, 1, 0, NOWHERE, transaction, 0), read_header(batch), batch
    )


def plain(state: PartitionState, producer_id: int) -> None:
    batch = build_batch([NewRecord(b"v")], producer_id=producer_id, producer_epoch=0, base_sequence=0)
    length = HEADER_BYTES + len(batch)
    state.fold_plain(
        Entry(Kind.PLAIN, state.position, length, 1, 0, NOWHERE, TransactionId(-1, -1, -1), 0),
        read_header(batch),
        batch,
    )


def test_producers_with_open_transactions_stay_and_the_oldest_idle_ones_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fold, "PRODUCERS_MAX", 20)
    sorted_times = 0

    class Counted(PartitionState):
        def _forget_oldest_producers(self) -> None:
            nonlocal sorted_times
            sorted_times += 1
            super()._forget_oldest_producers()

    state = Counted()
    for producer_id in range(100):
        draft(state, producer_id)
    assert sorted_times == 0, "open transactions are no reason to look for somebody to forget"
    for producer_id in range(100, 200):
        plain(state, producer_id)
    known = {producer_id for producer_id, _ in state.producers.items()}
    assert set(range(100)) <= known
    idle = sorted(producer_id for producer_id in known if producer_id >= 100)
    assert 18 <= len(idle) <= 20
    assert idle == list(range(200 - len(idle), 200)), "the newest"
    assert sorted_times <= 100 // 2
