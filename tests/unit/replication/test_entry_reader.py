"""Entries come out whole however their bytes arrive, each CRC is checked, and memory grows with what came."""

from __future__ import annotations

from collections.abc import Callable
from unittest import mock

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from faircopy.journal import entry_format
from faircopy.journal.entry import HEADER_BYTES, MAX_LENGTH, Kind
from faircopy.journal.entry_format import encode_header
from faircopy.replication import entry_reader
from faircopy.replication.entry_reader import EntryReader
from faircopy.replication.errors import BadCopy, Refused
from faircopy.replication.frames import BadMessage
from faircopy.replication.messages import Data
from tests.peak_memory import takes_less_than
from tests.unit.replication.leaders_journal import LeadersJournal, P, Q

MIB = 1 << 20
UNKNOWN_KIND = 200


def leaders(*payloads: bytes) -> LeadersJournal:
    journal = LeadersJournal()
    for payload in payloads:
        journal.add(payload)
    return journal


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=6), st.data())
def test_entries_are_whole_wherever_the_bytes_are_cut(payloads: list[bytes], data: st.DataObject) -> None:
    journal = leaders(*payloads)
    reader, at, found = EntryReader(), 0, []
    while at < journal.end:
        stop = data.draw(st.integers(at + 1, journal.end))
        found += list(reader.take(journal.data(at, stop)))
        whole = max((entry.end for entry in journal.entries if entry.end <= stop), default=0)
        assert reader.partial_bytes(P) == stop - whole
        at = stop
    assert [each.entry for each in found] == journal.entries
    assert [bytes(each.payload) for each in found] == payloads
    assert [each.payload_crc for each in found] == [crc32c(payload) for payload in payloads]


@given(st.binary(max_size=40), st.data())
def test_no_bit_may_change(payload: bytes, data: st.DataObject) -> None:
    journal = leaders(payload)
    content = bytearray(journal.content)
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(BadCopy):
        list(EntryReader().take(journal.data()._replace(content=bytes(content))))


def test_what_is_bad_is_named() -> None:
    journal = leaders(b"one", b"two")
    second = journal.entries[1].position
    with pytest.raises(BadCopy, match=f"position {second} of journal {P.hex()} .* header's CRC"):
        list(EntryReader().take(journal.data(second)._replace(seed=8)))
    with pytest.raises(BadCopy, match="an entry with position 0"):
        list(EntryReader().take(journal.data()._replace(position=9)))
    with pytest.raises(BadCopy, match=f"position {second} .* payload's CRC"):
        list(EntryReader().take(journal.data()._replace(content=journal.content[:-1] + b"!")))


def in_pieces(reader: EntryReader, journal: LeadersJournal) -> None:
    for at in range(journal.end):
        list(reader.take(journal.data(at, at + 1)))


def at_once(reader: EntryReader, journal: LeadersJournal) -> None:
    list(reader.take(journal.data()))


@pytest.mark.parametrize("arrive", [at_once, in_pieces])
def test_an_entry_of_an_unknown_kind_is_refused(
    arrive: Callable[[EntryReader, LeadersJournal], None],
) -> None:
    journal = leaders(b"known")
    journal.add(b"not known", kind=UNKNOWN_KIND)
    says = rf"position {journal.entries[1].position} of journal {P.hex()} \(kind 200, flags 0x0\): a newer"
    with pytest.raises(Refused, match=says):
        arrive(EntryReader(), journal)


def test_an_entry_with_unknown_flags_is_refused() -> None:
    """A copy of it would have none."""
    journal = leaders(b"x")
    content = bytearray(journal.content)
    content[entry_format.FLAGS_AT] = 1
    content[:4] = crc32c(bytes(content[4:HEADER_BYTES]), 7).to_bytes(4, "little")
    with pytest.raises(Refused, match="flags 0x1"):
        list(EntryReader().take(journal.data()._replace(content=bytes(content))))


def test_all_kinds_that_are_written_here_are_known() -> None:
    journal = LeadersJournal()
    for kind in Kind:
        journal.add(kind=kind)
    assert [each.entry.kind for each in EntryReader().take(journal.data())] == list(Kind)


def test_nothing_comes_within_an_entry_of_another_journal() -> None:
    journal, other = leaders(b"long enough"), LeadersJournal(Q)
    other.add()
    reader = EntryReader()
    assert list(reader.take(journal.data(0, 70))) == []
    with pytest.raises(BadMessage, match=f"data of journal {Q.hex()} came within an entry of"):
        list(reader.take(other.data()))
    with pytest.raises(BadMessage, match="another seed"):
        list(reader.take(journal.data(70)._replace(seed=9)))
    reader.forget()
    assert [bytes(each.payload) for each in reader.take(other.data())] == [b"payload"]


def test_each_crc_is_computed_once() -> None:
    journal = leaders(bytes(1000), b"", bytes(100))
    computed: list[int] = []

    def counted(content: bytes, seed: int = 0) -> int:
        computed.append(len(content))
        return crc32c(content, seed)

    with (
        mock.patch.object(entry_reader, "crc32c", counted),
        mock.patch.object(entry_format, "crc32c", counted),
    ):
        in_pieces(EntryReader(), journal)
    assert computed == [60, 1000, 60, 0, 60, 100]


def test_an_entry_that_is_whole_is_not_copied() -> None:
    journal = leaders(b"before")
    stream = bytearray(journal.content)
    [each] = EntryReader().take(journal.data()._replace(content=memoryview(stream)))
    stream[-6:] = b"behind"
    assert bytes(each.payload) == b"behind" and each.payload.readonly


def test_an_announced_length_takes_no_memory() -> None:
    entry = leaders(b"x").entries[0]._replace(length=MAX_LENGTH)
    begun = encode_header(entry, b"x", 7) + b"x"

    def begin() -> None:
        assert list(EntryReader().take(Data(P, 0, 7, begun))) == []

    assert takes_less_than(MIB // 16, begin, "a long entry")
