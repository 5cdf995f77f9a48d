"""The drafts of a transaction are found from the last one back, and rot in one of them where it is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircopy.journal.entry import Kind, TransactionId
from faircopy.journal.errors import DamagedJournal
from faircopy.journal.reverse_list import ReverseWalk, read_from_cache, read_from_disk
from tests.many import many
from tests.unit.journal.journal_bench import Bench, itself, run


@settings(max_examples=40, deadline=None)
@given(
    steps=many(st.tuples(st.integers(0, 3), st.integers(0, 40_000)), 40, least=1),
    cached=st.booleans(),
)
def test_the_reverse_list_gives_each_draft_of_its_transaction(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int]], cached: bool
) -> None:
    """I3: however many transactions are interleaved, over however many segments."""

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        heads: dict[int, int] = {}
        expected: dict[int, list[bytes]] = {}
        for number, (owner, size) in enumerate(steps):
            payload = bytes([number]) * size
            transaction = TransactionId(owner, 0, 1)
            entry = journal.append(
                Kind.DRAFT,
                payload,
                previous=heads.get(owner, -1),
                transaction=transaction,
                records=1,
                fold=itself,
            )
            heads[owner] = entry.position
            expected.setdefault(owner, []).append(payload)
        await journal.durable()
        for owner, head in heads.items():
            walk = ReverseWalk(
                journal, TransactionId(owner, 0, 1), read_from_cache if cached else read_from_disk
            )
            drafts = walk.collect(head, keep_bytes=1 << 30)
            assert [bytes(draft.payload or b"") for draft in drafts] == expected[owner]
            again = [bytes(walk.payload(draft.entry)) for draft in walk.collect(head, keep_bytes=-1)]
            assert again == expected[owner]

    run(tmp_path_factory.mktemp("journal"), test)


def test_rot_in_a_draft_is_found_where_it_is(tmp_path: Path) -> None:
    """Also in the link to the draft before: what it leads to by chance is not the one that is damaged."""

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        transaction, head = TransactionId(1, 0, 1), -1
        drafts = []
        for size in (0, 5, 300):
            journal.append(Kind.PLAIN, b"between", fold=itself)
            drafts.append(
                journal.append(Kind.DRAFT, b"x" * size, previous=head, transaction=transaction, fold=itself)
            )
            head = drafts[-1].position
        await journal.durable()
        segment = journal.segments.holding(head)
        walk = ReverseWalk(journal, transaction, read_from_disk)
        walk.check(head)
        for draft in drafts:
            first = segment.at(draft.position)
            for byte in range(first, first + draft.length):
                for bits in (1, 0x6B, 0x80, 0xFF):
                    with flipped(segment.path, byte, bits), pytest.raises(DamagedJournal) as damaged:
                        ReverseWalk(journal, transaction, read_from_disk).check(head)
                    assert damaged.value.byte == first, (byte - first, bits)

    run(tmp_path, test)


@contextlib.contextmanager
def flipped(path: Path, byte: int, bits: int) -> Iterator[None]:
    """A file with some bits of one byte changed for a while."""
    with path.open("r+b") as file:
        file.seek(byte)
        before = file.read(1)[0]
        for value in (before ^ bits, before):
            file.seek(byte)
            file.write(bytes([value]))
            file.flush()
            if value != before:
                yield
