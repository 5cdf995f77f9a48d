"""Drafts that are still in memory: bounded, and never another transaction's."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from faircopy.journal.entry import HEADER_BYTES, NOWHERE, Entry, Kind, TransactionId
from faircopy.journal.recent import DRAFTS_MAX, Draft, RecentDrafts, sole
from tests.many import many

JOURNAL = object()
T1, T2 = TransactionId(1, 0, 1), TransactionId(2, 0, 1)


def entry(position: int, previous: int, transaction: TransactionId, payload: bytes) -> Entry:
    return Entry(Kind.DRAFT, position, HEADER_BYTES + len(payload), 1, 0, previous, transaction, 0)


def fill(recent: RecentDrafts, transaction: TransactionId, sizes: list[int]) -> list[Draft]:
    """Drafts of one transaction, one after the other in the journal; returns them all."""
    drafts: list[Draft] = []
    position, previous = 0, NOWHERE
    for size in sizes:
        payload = b"x" * size
        drafts.append(Draft(entry(position, previous, transaction, payload), memoryview(payload)))
        recent.keep(JOURNAL, drafts[-1].entry, payload)
        previous, position = position, drafts[-1].entry.end
    return drafts


@given(sizes=many(st.integers(1, 100), 30, least=1), bytes_max=st.integers(0, 500))
def test_the_newest_are_kept_up_to_the_bound(sizes: list[int], bytes_max: int) -> None:
    recent = RecentDrafts(bytes_max)
    drafts = fill(recent, T1, sizes)
    taken = recent.take(JOURNAL, T1, drafts[-1].entry.position)
    assert taken == drafts[len(drafts) - len(taken) :], "what is taken is the end of the list, in order"
    assert sum(len(draft.payload or b"") for draft in taken) <= bytes_max
    assert sizes[-1] > bytes_max or taken
    assert recent.take(JOURNAL, T1, drafts[-1].entry.position) == [], "once"


def test_another_journal_and_another_transaction_have_their_own() -> None:
    recent = RecentDrafts(1_000)
    (draft,) = fill(recent, T1, [10])
    assert recent.take(object(), T1, 0) == []
    assert recent.take(JOURNAL, T2, 0) == []
    assert recent.take(JOURNAL, T1, NOWHERE) == []
    assert recent.take(JOURNAL, T1, 0) == [draft]


def test_the_number_is_bounded_too() -> None:
    recent = RecentDrafts(1 << 30)
    drafts = fill(recent, T1, [1] * (DRAFTS_MAX + 10))
    assert recent.take(JOURNAL, T1, drafts[-1].entry.position) == drafts[10:]


def test_a_small_part_does_not_keep_its_whole_request_in_memory() -> None:
    request = memoryview(bytes(1_000))
    assert sole(request[:900]).obj is request.obj
    assert sole(request[:100]).obj is not request.obj
    assert sole(request[:100]) == bytes(100)


def test_those_of_one_journal_are_forgotten() -> None:
    recent = RecentDrafts(20)
    fill(recent, T1, [10])
    other = object()
    kept = Draft(entry(0, NOWHERE, T2, b"y" * 10), memoryview(b"y" * 10))
    recent.keep(other, kept.entry, b"y" * 10)
    recent.forget_all(JOURNAL)
    assert recent.take(JOURNAL, T1, 0) == []
    fill(recent, T1, [10])
    assert recent.take(other, T2, 0) == [kept], "what was forgotten takes no memory"
