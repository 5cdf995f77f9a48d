"""An entry that the fold of a data journal refuses has changed nothing: it can be passed over."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from faircopy.copier.fold import (
    DISCARD_PAYLOAD,
    FORGET_PAYLOAD,
    PREPARED_PAYLOAD,
    TRIM_PAYLOAD,
    ApplyOrder,
    PartitionState,
)
from faircopy.errors import InvariantViolation
from faircopy.journal.entry import NOWHERE, Entry, Kind, TransactionId
from faircopy.wire.records import NewRecord, build_batch
from tests.many import many

LENGTH = 100
TRANSACTIONS = st.builds(TransactionId, st.integers(1, 2), st.integers(0, 1), st.integers(0, 2))
KINDS = (
    Kind.PLAIN, Kind.DRAFT, Kind.DRAFT, Kind.PREPARED, Kind.APPLY, Kind.DISCARD, Kind.TRIM,
    Kind.FORGET_PRODUCERS, Kind.REOPEN,
)  # fmt: skip


@st.composite
def steps(draw: st.DrawFn) -> tuple[Kind, TransactionId, int, int, int]:
    """Kind, transaction, leader epoch, which entry is the one before, and a number for the payload."""
    kind, transaction = draw(st.sampled_from(KINDS)), draw(TRANSACTIONS)
    return kind, transaction, draw(st.integers(0, 2)), draw(st.integers(0, 3)), draw(st.integers(-1, 2))


def payload_of(kind: Kind, transaction: TransactionId, number: int) -> bytes:
    """A payload of this kind."""
    match kind:
        case Kind.PLAIN | Kind.DRAFT:
            producer_id, epoch, _ = transaction
            return build_batch([NewRecord(b"x")], producer_id=producer_id, producer_epoch=epoch)
        case Kind.PREPARED:
            return PREPARED_PAYLOAD.pack(1, number)
        case Kind.APPLY:
            return ApplyOrder(number, 0, transaction).payload(transaction)
        case Kind.DISCARD:
            return DISCARD_PAYLOAD.pack(number, number)
        case Kind.TRIM:
            return TRIM_PAYLOAD.pack(number)
        case Kind.REOPEN:
            return b""
    return FORGET_PAYLOAD.pack(number)


def content(value: Any) -> Any:
    """All that is in a state, in a form that can be compared."""
    if isinstance(value, dict):
        return {key: content(each) for key, each in value.items()}
    names = getattr(type(value), "__slots__", None)
    return {name: content(getattr(value, name)) for name in names} if names else copy.copy(value)


@given(many(steps(), 40, least=1))
def test_what_is_refused_changes_nothing(found: list[tuple[Kind, TransactionId, int, int, int]]) -> None:
    state, at = PartitionState(), 0
    heads: dict[TransactionId, int] = {}
    for kind, transaction, leader_epoch, back, number in found:
        previous = NOWHERE
        if kind is Kind.DRAFT:
            previous = heads.get(transaction, NOWHERE) if back else at - LENGTH
        entry = Entry(kind, at, LENGTH, 1, leader_epoch, previous, transaction, at)
        at += LENGTH
        before = content(vars(state))
        try:
            state.fold(entry, payload_of(kind, transaction, number))
        except InvariantViolation:
            assert content(vars(state)) == before, entry
        else:
            if kind is Kind.DRAFT:
                heads[transaction] = entry.position
