"""After a crash between the participants of transactions, all partitions still show these in one order."""

from __future__ import annotations

import itertools
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from faircopy.copier.fold import NO_RANK
from faircopy.transactions import order

PARTITIONS = 4
transactions = st.lists(
    st.tuples(st.sampled_from("ab"), st.sets(st.integers(0, PARTITIONS - 1), min_size=1)), max_size=8
)


def is_one_order(logs: list[list[int]]) -> bool:
    """Whether one order contains all logs: whether there is always a next one that no log holds back."""
    left = [list(log) for log in logs]
    while any(left):
        heads = {log[0] for log in left if log}
        free = {head for head in heads if all(head not in log[1:] for log in left)}
        if not free:
            return False
        left = [log[1:] if log and log[0] in free else log for log in left]
    return True


@given(transactions, st.lists(st.integers(0, 8), min_size=PARTITIONS, max_size=PARTITIONS))
def test_what_is_applied_again_goes_on_in_the_order_of_before(
    planned: list[tuple[str, set[int]]], written: list[int]
) -> None:
    """The broker meant to apply them as `planned`; before the crash, partition n had written `written[n]`."""
    meant = [[number for number, (_, parts) in enumerate(planned) if n in parts] for n in range(PARTITIONS)]
    logs = [log[:count] for log, count in zip(meant, written, strict=True)]
    applied = {number for log in logs for number in log}
    rows = [
        (group, number if number in applied else NO_RANK, number) for number, (group, _) in enumerate(planned)
    ]
    ranked = order.by_rank(sorted(rows, key=lambda row: row[0]))  # each group has another journal
    again = [number for _, number in ranked]
    assert sorted(again) == list(range(len(planned)))
    for group in "ab":
        of_group = [number for number in again if planned[number][0] == group]
        assert all(one < other for one, other in pairwise(of_group))
    for n, log in enumerate(logs):
        log += [number for number in again if n in planned[number][1] and number not in log]
    assert is_one_order(logs)
    fresh = itertools.count(len(planned))
    ranks = {number: next(fresh) if rank == NO_RANK else rank for rank, number in ranked}
    assert all(ranks[number] == number for number in applied)
    for log in logs:
        assert all(ranks[one] <= ranks[other] for one, other in pairwise(log))
    assert_same_group_at_ties(planned, ranks)


def assert_same_group_at_ties(planned: list[tuple[str, set[int]]], ranks: dict[int, int]) -> None:
    """Only what is applied in its group's order, one after the other, may share a rank."""
    groups: dict[int, str] = {}
    for number, rank in ranks.items():
        assert groups.setdefault(rank, planned[number][0]) == planned[number][0]


def test_partitions_that_differ_are_seen() -> None:
    assert is_one_order([[0, 1], [1, 2]])
    assert not is_one_order([[0, 1], [1, 2], [2, 0]])
