"""Segments of an older faircopy: read as they are, judged by the same rules, and never appended to."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircopy.journal.entry import HEADER_BYTES, NO_TRANSACTION, BadEntry, Entry, Kind, TransactionId
from faircopy.journal.errors import DamagedJournal
from faircopy.journal.format_3 import check, decode_header, find_headers
from faircopy.journal.reverse_list import ReverseWalk, read_from_disk
from faircopy.verify.journal_entries import open_to_show, unclean_end
from tests.unit.journal.journal_bench import IDENTITY, Bench, flip, itself, run, tear
from tests.unit.journal.test_format_4 import POSITION, SEED, entries, flip_a_bit
from tests.upgrade.format_3 import Old, encode_header, write_segment

RESERVED = 4096
TRANSACTION = TransactionId(7, 0, 1)


def old_entries(payloads: list[bytes], position: int = 0, durable: int | None = None) -> list[Old]:
    """Plain entries that follow one another. Each was synced before the next one came, unless `durable` says
    else.
    """
    made = []
    for payload in payloads:
        length = HEADER_BYTES + len(payload)
        known = position if durable is None else min(durable, position)
        made.append((Entry(Kind.PLAIN, position, length, 1, 0, -1, NO_TRANSACTION, known), payload))
        position += length
    return made


def magic_of(path: Path) -> bytes:
    return path.read_bytes()[:8]


# -- the layout ----------------------------------------------------------------------------------------------


def test_the_bytes_of_an_entry() -> None:
    """As commit 37b53f5 wrote them."""
    entry = Entry(Kind.DRAFT, 0x1122, 67, 3, 0, 0x1000, TransactionId(5, 2, 9), 0x1100)
    written = (
        "46434531 43000000 42cd04a9 01 00 0200 00000000 03000000 2211000000000000 0011000000000000 "
        "0010000000000000 0500000000000000 0900000000000000 616263"
    )
    data = bytes.fromhex(written.replace(" ", ""))
    assert encode_header(entry, b"abc", 1234) + b"abc" == data
    assert decode_header(data, 0, 0x1122, 1234) == entry
    check(data, 0, len(data), 1234)


@given(entries(), SEED, st.data())
def test_every_flipped_bit_is_noticed(made: Old, seed: int, data: st.DataObject) -> None:
    entry, payload = made
    encoded = bytearray(encode_header(entry, payload, seed) + payload)
    assert decode_header(memoryview(encoded), 0, entry.position, seed) == entry
    check(memoryview(encoded), 0, entry.length, seed)
    flip_a_bit(encoded, data)
    with pytest.raises(BadEntry):
        decoded = decode_header(memoryview(encoded), 0, entry.position, seed)
        check(memoryview(encoded), 0, decoded.length, seed)


@given(POSITION, SEED, st.lists(st.binary(max_size=100) | st.none(), max_size=6))
def test_headers_are_found_wherever_they_begin(position: int, seed: int, parts: list[bytes | None]) -> None:
    piece, expected = b"", []
    for part in parts:
        if part is None:
            expected.append(position + len(piece))
            entry = Entry(Kind.PLAIN, position + len(piece), HEADER_BYTES, 0, 0, -1, NO_TRANSACTION, 0)
        piece += encode_header(entry, b"", seed) if part is None else part
    assert list(find_headers(piece, position, seed)) == expected
    assert list(find_headers(piece[:-1], position, seed)) == [
        at for at in expected if at + 64 < position + len(piece)
    ]


# -- journals that have some ---------------------------------------------------------------------------------


def test_what_is_appended_goes_to_a_segment_of_the_new_format(tmp_path: Path) -> None:
    old = old_entries([b"first", b"second"])
    last = old[-1][0]
    path = write_segment(tmp_path, IDENTITY, 0, old, reserved=RESERVED)
    before = path.read_bytes()

    async def test(bench: Bench) -> None:
        journal, found = bench.recovered()
        assert [payload for _, payload in found] == [b"first", b"second"]
        assert not journal.was_torn
        journal.leader_epoch = 7
        third = journal.append(Kind.PLAIN, b"third", fold=itself)
        journal.append(Kind.PLAIN, b"fourth", fold=itself)
        await journal.durable()
        assert third.position == last.end
        assert [segment.base for segment in journal.segments] == [0, last.end]
        assert [magic_of(segment.path) for segment in journal.segments] == [b"FCJSEG01", b"FCJSEG02"]
        again, found = bench.recovered()
        assert [payload for _, payload in found] == [b"first", b"second", b"third", b"fourth"]
        again.leader_epoch = 8
        again.append(Kind.PLAIN, b"fifth", fold=itself)
        await again.durable()
        assert len(again.segments) == 2
        epochs = [recovered.entry.leader_epoch for recovered in open_to_show(tmp_path).entries(0)]
        assert epochs == [0, 0, 7, 7, 8]

    run(tmp_path, test)
    assert path.read_bytes() == before


def test_a_segment_without_entries_gives_its_name_to_the_new_one(tmp_path: Path) -> None:
    path = write_segment(tmp_path, IDENTITY, 0, [], reserved=RESERVED)

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        journal.append(Kind.PLAIN, b"first", fold=itself)
        await journal.durable()
        assert [segment.path for segment in journal.segments] == [path]
        assert magic_of(path) == b"FCJSEG02"
        assert [payload for _, payload in bench.recovered()[1]] == [b"first"]

    run(tmp_path, test)


def test_a_crash_right_after_the_new_segment_was_made(tmp_path: Path) -> None:
    old = old_entries([b"first"])
    write_segment(tmp_path, IDENTITY, 0, old, reserved=RESERVED)

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        segment = journal.segments.for_append(old[-1][0].end, 100, 1 << 20, bench.new_salt)
        segment.make(IDENTITY, 1 << 20)
        again, found = bench.recovered()
        assert [payload for _, payload in found] == [b"first"]
        again.append(Kind.PLAIN, b"second", fold=itself)
        await again.durable()
        assert [payload for _, payload in bench.recovered()[1]] == [b"first", b"second"]

    run(tmp_path, test)


def test_old_segments_go_as_they_are_reclaimed(tmp_path: Path) -> None:
    old = old_entries([b"first"])
    path = write_segment(tmp_path, IDENTITY, 0, old)

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        assert journal.reclaim(old[-1][0].end) == []
        journal.append(Kind.PLAIN, b"second", fold=itself)
        await journal.durable()
        assert [segment.path for segment in journal.reclaim(journal.watermarks.durable)] == [path]

    run(tmp_path, test)


@settings(max_examples=40, deadline=None)
@given(sizes=st.lists(st.integers(0, 3000), min_size=1, max_size=10), data=st.data())
def test_any_torn_tail_is_cut(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], data: st.DataObject
) -> None:
    """Whatever of the last, unsynced write is on disk: what was durable stays, in order, and appending goes
    on.
    """
    directory = tmp_path_factory.mktemp("journal")
    durable_count = data.draw(st.integers(0, len(sizes)))
    payloads = [bytes([number]) * size for number, size in enumerate(sizes)]
    durable = sum(HEADER_BYTES + size for size in sizes[:durable_count])
    old = old_entries(payloads, durable=durable)
    path = write_segment(directory, IDENTITY, 0, old, reserved=RESERVED)
    tear(path, 64 + durable, 64 + old[-1][0].end, data)

    async def test(bench: Bench) -> None:
        journal, found = bench.recovered()
        assert [payload for _, payload in found] == payloads[: len(found)]
        assert len(found) >= durable_count
        journal.append(Kind.PLAIN, b"after the crash", fold=itself)
        await journal.durable()
        assert [payload for _, payload in bench.recovered()[1]] == [
            *payloads[: len(found)],
            b"after the crash",
        ]

    run(directory, test)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), goes_on=st.booleans())
def test_damage_in_the_middle_is_told_and_never_cut(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, goes_on: bool
) -> None:
    """Whether what tells of it stands in the same segment, or in a later one of the new format."""
    directory = tmp_path_factory.mktemp("journal")
    old = old_entries([bytes([number]) * 700 for number in range(5)])
    path = write_segment(directory, IDENTITY, 0, old, reserved=RESERVED)

    async def test(bench: Bench) -> None:
        if goes_on:
            journal, _ = bench.recovered()
            journal.append(Kind.PLAIN, b"in the new format", fold=itself)
            await journal.durable()
        damaged = data.draw(st.sampled_from(old if goes_on else old[:-1]))[0]
        byte = 64 + damaged.position
        flip(path, data.draw(st.integers(byte, byte + damaged.length - 1)))
        before = path.read_bytes()
        with pytest.raises(DamagedJournal, match="is damaged at byte") as caught:
            bench.recovered()
        assert (caught.value.path, caught.value.byte) == (path, byte)
        files = open_to_show(directory)
        assert [each.entry for each in files.entries(0)] == [
            each for each, _ in old if each.end <= damaged.position
        ]
        assert f"{path} is damaged at byte {byte} " in (unclean_end(files) or "")
        assert path.read_bytes() == before

    run(directory, test)


def test_a_damaged_header_of_a_segment_is_told(tmp_path: Path) -> None:
    """Also in the digit that tells the formats apart."""
    path = write_segment(tmp_path, IDENTITY, 0, old_entries([b"first"]))
    path.write_bytes(b"FCJSEG02" + path.read_bytes()[8:])

    async def test(bench: Bench) -> None:
        with pytest.raises(DamagedJournal, match="does not begin with a sound segment header"):
            bench.opened()

    run(tmp_path, test)


def test_a_transaction_that_began_in_the_old_format(tmp_path: Path) -> None:
    """I3: the reverse list goes on over both; rot in a draft of either is found where it is."""
    plain = old_entries([b"between"])
    first = Entry(Kind.DRAFT, plain[0][0].end, HEADER_BYTES + 3, 1, 0, -1, TRANSACTION, 0)
    second = Entry(Kind.DRAFT, first.end, HEADER_BYTES + 3, 1, 0, first.position, TRANSACTION, 0)
    write_segment(tmp_path, IDENTITY, 0, [*plain, (first, b"old"), (second, b"OLD")], reserved=RESERVED)

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        journal.append(Kind.PLAIN, b"more", fold=itself)
        head = journal.append(
            Kind.DRAFT, b"new", previous=second.position, transaction=TRANSACTION, records=1, fold=itself
        ).position
        await journal.durable()
        walk = ReverseWalk(journal, TRANSACTION, read_from_disk)
        assert [bytes(draft.payload or b"") for draft in walk.collect(head, 1 << 20)] == [
            b"old",
            b"OLD",
            b"new",
        ]
        assert [bytes(walk.payload(draft.entry)) for draft in walk.collect(head, -1)] == [
            b"old",
            b"OLD",
            b"new",
        ]
        walk.check(head)
        for position in (first.position, second.position, head):
            segment = journal.segments.holding(position)
            flip(segment.path, segment.at(position) + HEADER_BYTES)
            with pytest.raises(DamagedJournal) as caught:
                ReverseWalk(journal, TRANSACTION, read_from_disk).check(head)
            assert (caught.value.path, caught.value.byte) == (segment.path, segment.at(position))
            flip(segment.path, segment.at(position) + HEADER_BYTES)

    run(tmp_path, test)
