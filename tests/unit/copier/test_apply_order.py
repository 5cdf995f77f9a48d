"""The payload of APPLY."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from faircopy.copier.fold import APPLY_PAYLOAD, ApplyOrder, read_apply
from faircopy.journal.entry import TransactionId

numbers = st.integers(-1, 2**63 - 1)
transactions = st.builds(TransactionId, numbers, st.integers(-1, 2**15 - 1), numbers)


@given(numbers, numbers, transactions, transactions)
def test_what_is_written_is_read(
    finished: int, rank: int, transaction: TransactionId, lead: TransactionId
) -> None:
    for order in (ApplyOrder(finished, rank, lead), ApplyOrder(finished, rank, transaction)):
        assert read_apply(memoryview(order.payload(transaction)), transaction) == order


@given(numbers, numbers, transactions)
def test_a_transaction_leads_itself_unless_another_is_named(
    finished: int, rank: int, transaction: TransactionId
) -> None:
    order = read_apply(APPLY_PAYLOAD.pack(finished, rank), transaction)
    assert order == ApplyOrder(finished, rank, transaction)
    assert order.payload(transaction) == APPLY_PAYLOAD.pack(finished, rank)
