"""Entries of a data journal at random, most of which fit together, and what their fold has become."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

from faircopy.copier.fold import (
    DISCARD_PAYLOAD,
    FORGET_PAYLOAD,
    PREPARED_PAYLOAD,
    TRIM_PAYLOAD,
    ApplyOrder,
)
from faircopy.copier.producer_table import ProducerTable
from faircopy.journal.entry import NOWHERE, Entry, Kind, TransactionId
from faircopy.wire.records import NewRecord, build_batch

LENGTH = 100
TRANSACTIONS = st.builds(TransactionId, st.integers(1, 2), st.integers(0, 1), st.integers(0, 2))
KINDS = (
    Kind.PLAIN, Kind.DRAFT, Kind.DRAFT, Kind.PREPARED, Kind.APPLY, Kind.DISCARD, Kind.TRIM,
    Kind.FORGET_PRODUCERS, Kind.REOPEN,
)  # fmt: skip


Step = tuple[Kind, TransactionId, int, int, int]


@st.composite
def steps(draw: st.DrawFn) -> Step:
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
    if isinstance(value, (dict, ProducerTable)):
        return {key: content(each) for key, each in value.items()}
    names = getattr(type(value), "__slots__", None)
    return {name: content(getattr(value, name)) for name in names} if names else copy.copy(value)


class OddEntries:
    """A journal's entries, most of which fit together."""

    def __init__(self) -> None:
        self._at = 0
        self._heads: dict[TransactionId, int] = {}

    def next(self, step: Step) -> tuple[Entry, bytes]:
        """The entry of a step, and its payload."""
        kind, transaction, leader_epoch, back, number = step
        previous = NOWHERE
        if kind is Kind.DRAFT:
            previous = self._heads.get(transaction, NOWHERE) if back else self._at - LENGTH
        entry = Entry(kind, self._at, LENGTH, 1, leader_epoch, previous, transaction, self._at)
        self._at += LENGTH
        return entry, payload_of(kind, transaction, number)

    def accepted(self, entry: Entry) -> None:
        """The entry was folded: those after it may build on it."""
        if entry.kind is Kind.DRAFT:
            self._heads[entry.transaction] = entry.position
