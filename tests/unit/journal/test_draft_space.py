"""What drafts take is bounded, and what is over counts no longer."""

from __future__ import annotations

import pytest

from faircopy.journal.draft_space import DraftSpace, TooManyDrafts
from faircopy.journal.entry import TransactionId

T1, T2 = TransactionId(1, 0, 1), TransactionId(2, 0, 1)


def test_one_transaction_has_a_limit() -> None:
    space = DraftSpace(transaction_max_bytes=100)
    space.take(T1, 60)
    with pytest.raises(TooManyDrafts, match=r"has 60 .* 41 more, as transaction\.drafts\.max\.bytes is 100"):
        space.take(T1, 41)
    space.take(T1, 40)
    space.take(T2, 100)
    assert space.bytes == 200


def test_all_together_have_a_limit() -> None:
    space = DraftSpace(max_bytes=100)
    space.take(T1, 60)
    with pytest.raises(TooManyDrafts, match=r"have 60 .* 41 more, as drafts\.max\.bytes is 100"):
        space.take(T2, 41)
    space.give_back(T1, 60)
    space.take(T2, 100)
    assert space.bytes == 100


def test_a_transaction_gives_back_part_by_part() -> None:
    space = DraftSpace(transaction_max_bytes=100)
    space.take(T1, 60)
    space.take(T1, 40)
    space.give_back(T1, 40)
    space.take(T1, 40)
    with pytest.raises(TooManyDrafts):
        space.take(T1, 1)
    space.give_back(T1, 100)
    assert space.bytes == 0
    space.take(T1, 100)


def test_what_a_start_finds_may_be_above_the_limits() -> None:
    space = DraftSpace(transaction_max_bytes=10, max_bytes=10)
    space.count(T1, 100)
    for transaction in (T1, T2):
        with pytest.raises(TooManyDrafts):
            space.take(transaction, 1)
    space.give_back(T1, 100)
    space.take(T2, 10)
