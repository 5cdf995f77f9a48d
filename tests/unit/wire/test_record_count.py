"""Counting records: what the header says is what the batch holds, or the batch is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.wire import record_count
from faircopy.wire.batch import (
    HEADER,
    HEADER_BYTES,
    BatchHeader,
    InvalidBatch,
    InvalidTimestamp,
    read_header,
    with_max_timestamp,
)
from faircopy.wire.compression import RecordsError
from faircopy.wire.record_count import RECORDS_AT_ONCE, CountingBudget, RecordCounter, count_records
from faircopy.wire.records import NewRecord, build_batch, varint, with_crc
from faircopy.wire.timestamps import TimeRange, TimestampClaim, TimestampRange

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

ENCODERS: dict[int, Callable[[bytes], ReadableBuffer]] = {
    0: bytes,
    1: cramjam.gzip.compress,
    2: cramjam.snappy.compress_raw,
    3: cramjam.lz4.compress,
    4: cramjam.zstd.compress,
}
TIMES = st.integers(1_000, 1_060) | st.integers(0, 20_000) | st.integers(-(2**40), 2**40) | st.just(2**62)
sizes = st.lists(
    st.tuples(st.integers(0, 300) | st.integers(8_000, 20_000), st.integers(1, 300)), min_size=1, max_size=6
)


def counted(section: bytes, records: int, codec: int = 0, budget: CountingBudget | None = None) -> bool:
    """Whether a batch that says so many records, and holds this section, is counted at once."""
    header: BatchHeader = read_header(build_batch([NewRecord(b"")]))
    packed = bytes(ENCODERS[codec](section))
    header = header._replace(
        length=HEADER_BYTES - 12 + len(packed),
        records=records,
        last_offset_delta=records - 1,
        attributes=codec,
    )
    batch = with_crc(HEADER.pack(*header) + packed)
    return count_records(memoryview(batch), header, budget or CountingBudget(), TimestampClaim(header))


def section_of(runs: list[tuple[int, int]]) -> tuple[bytes, int]:
    """Records of `size` bytes of value, `times` times, for each run; and how many they are."""
    messages = [NewRecord(bytes(size)) for size, times in runs for _ in range(times)]
    return build_batch(messages)[HEADER_BYTES:], len(messages)


@given(runs=sizes, codec=st.sampled_from(list(ENCODERS)))
def test_a_true_count_is_taken_and_every_other_refused(runs: list[tuple[int, int]], codec: int) -> None:
    runs = [(size, min(times, 3) if size > 300 else times) for size, times in runs]
    section, records = section_of(runs)
    assert counted(section, records, codec)
    for lie in {1, records - 1, records + 1, 2 * records, 1_000, 2**31 - 1} - {0, records}:
        with pytest.raises(InvalidBatch):
            counted(section, lie, codec)


@pytest.mark.parametrize("rest", [b"\0", b"abc", build_batch([NewRecord(b"")])[HEADER_BYTES:]])
@pytest.mark.parametrize("records", [1, 17, 400])
def test_nothing_follows_the_last_record(records: int, rest: bytes) -> None:
    section, _ = section_of([(10, records)])
    with pytest.raises(InvalidBatch, match="bytes follow"):
        counted(section + rest, records)


@pytest.mark.parametrize(
    "section",
    [
        varint(-7) + bytes(20),
        varint(2**31) + bytes(20),
        varint(2**40) + bytes(20),
        b"\x80" * 30,
        b"\xff" * 30,
        varint(6),
    ],
)
def test_lengths_that_do_not_fit(section: bytes) -> None:
    with pytest.raises(InvalidBatch):
        counted(section, 1)


# Records by their lengths, of which some do not fit: any bytes hardly ever begin with one that does.
RECORD_LIKE = st.builds(
    lambda content, off: varint(len(content) + off) + content,
    st.binary(max_size=20),
    st.sampled_from([0, 0, 0, 0, 1, -1, 1 << 20]),
)
SECTIONS = st.binary(max_size=300) | st.lists(RECORD_LIKE, max_size=12).map(b"".join)


@given(section=SECTIONS, records=st.integers(1, 60) | st.integers(1, 6), piece=st.integers(1, 40))
def test_garbage_raises_nothing_else_and_pieces_make_no_difference(
    section: bytes, records: int, piece: int
) -> None:
    verdicts = {is_true(section, records, len(section) or 1), is_true(section, records, piece)}
    assert verdicts == {one_by_one(section, records)}


@given(runs=sizes, piece=st.integers(200, 3_000), off=st.sampled_from([0, 0, 1, -1]))
def test_sections_in_pieces(runs: list[tuple[int, int]], piece: int, off: int) -> None:
    section, records = section_of([(size, min(times, 3) if size > 300 else times) for size, times in runs])
    assert is_true(section, records + off, piece) == (off == 0)


def is_true(section: bytes, records: int, piece_bytes: int) -> bool:
    """Whether the section, in pieces of this size, holds so many records."""
    header = read_header(build_batch([NewRecord(b"", timestamp_ms=0)]))
    counter = RecordCounter(records, TimestampRange(header))
    try:
        for at in range(0, len(section), piece_bytes):
            counter.feed(section[at : at + piece_bytes])
        counter.finish()
    except (InvalidBatch, InvalidTimestamp):
        return False
    return True


def one_by_one(section: bytes, records: int) -> bool:
    """The same, in the plainest way."""
    at = 0
    for _ in range(records):
        size, at = number_at(section, at, 5)
        delta, _ = number_at(section, at + 1, 10)
        if size is None or size & 1 or delta is None or at + (size >> 1) > len(section):
            return False
        if (delta >> 1) ^ -(delta & 1) not in range(-(2**63), 2**63):
            return False
        at += size >> 1
    return at == len(section)


def number_at(section: bytes, at: int, bytes_max: int) -> tuple[int | None, int]:
    """The number at a byte, in zigzag, and the byte after it; None if there is none."""
    value = 0
    for shift in range(0, 7 * bytes_max, 7):
        if at >= len(section):
            return None, at
        byte = section[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    return None, at


@given(
    messages=st.lists(st.tuples(st.integers(0, 90), TIMES), min_size=1, max_size=60),
    alike=st.integers(1, 40),
    piece=st.integers(1, 3_000),
    claimed=st.sampled_from(["greatest", "first", "last", "none", "later"]),
)
def test_the_range_of_the_times(
    messages: list[tuple[int, int]], alike: int, piece: int, claimed: str
) -> None:
    """What the header claims is believed if it is true, at once and in pieces, and else found."""
    listed = [NewRecord(bytes(size), timestamp_ms=time) for size, time in messages for _ in range(alike)]
    times = [message.timestamp_ms for message in listed]
    true = TimeRange(min(times), max(times))
    claims = {
        "greatest": true.greatest_ms,
        "first": times[0],
        "last": times[-1],
        "none": -1,
        "later": true.greatest_ms + 1,
    }
    batch = with_max_timestamp(memoryview(build_batch(listed)), claims[claimed])
    header = read_header(batch)

    at_once, in_pieces, decoded = TimestampClaim(header), TimestampClaim(header), TimestampRange(header)
    assert count_records(memoryview(batch), header, CountingBudget(), at_once)
    for counter in (RecordCounter(len(times), in_pieces), RecordCounter(len(times), decoded)):
        for at in range(HEADER_BYTES, len(batch), piece):
            counter.feed(batch[at : at + piece])
        counter.finish()
    assert decoded.range == true
    for claim in (at_once, in_pieces):
        assert claim.borne_out(needs_least=True) in {None, true}
        assert claim.borne_out(needs_least=False) in {None, TimeRange(times[0], true.greatest_ms)}
        if claimed == "greatest" and true.greatest_ms - true.least_ms < 2**26:
            assert claim.borne_out(needs_least=False) is not None
            assert (claim.borne_out(needs_least=True) is not None) == (true.least_ms == times[0])


@pytest.mark.parametrize("delta_ms", [-1, -64, -65, -1_000, -(2**26), -(2**28), -(2**54), -(2**60)])
@pytest.mark.parametrize("records", [1, 2, 60])
def test_no_time_is_the_base_if_all_are_earlier(delta_ms: int, records: int) -> None:
    batch, header = at_distance(delta_ms, records, claimed_ms=0)
    claim = TimestampClaim(header)
    assert count_records(batch, header, CountingBudget(), claim)
    assert claim.borne_out(needs_least=False) is None


@pytest.mark.parametrize("delta_ms", [1, 63, 64, 1_000, 2**27 - 1])
@pytest.mark.parametrize("records", [1, 2, 60])
def test_the_base_is_not_the_least_if_all_are_later(delta_ms: int, records: int) -> None:
    batch, header = at_distance(delta_ms, records, claimed_ms=delta_ms)
    claim = TimestampClaim(header)
    assert count_records(batch, header, CountingBudget(), claim)
    assert claim.borne_out(needs_least=True) is None
    assert claim.borne_out(needs_least=False) == TimeRange(0, delta_ms)


def at_distance(delta_ms: int, records: int, claimed_ms: int) -> tuple[memoryview, BatchHeader]:
    """A batch with a base timestamp of 0, whose records all have the same other one."""
    body = b"\0" + varint(delta_ms) + b"\0\1\1\0"
    section = (varint(len(body)) + body) * records
    header = read_header(build_batch([NewRecord(b"", timestamp_ms=0)] * records))
    header = header._replace(length=HEADER_BYTES - 12 + len(section), max_timestamp_ms=claimed_ms)
    return memoryview(HEADER.pack(*header) + section), header


def test_what_takes_long_is_left_to_others() -> None:
    many, records = section_of([(0, RECORDS_AT_ONCE + 1)])
    assert not counted(many, records)
    large, records = section_of([(record_count.SECTION_BYTES_AT_ONCE, 1)])
    assert counted(large, records)
    assert not counted(large, records, codec=4)


def test_one_request_has_one_budget() -> None:
    section, records = section_of([(100, 4_000)])
    budget = CountingBudget()
    assert [counted(section, records, 1, budget) for _ in range(4)] == [True, False, False, False]
    small, few = section_of([(0, 4_000)])
    assert [counted(small, few, 0, budget) for _ in range(3)] == [True, False, False]


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_what_does_not_decompress_is_refused(codec: int) -> None:
    header = read_header(build_batch([NewRecord(b"")]))._replace(attributes=codec)
    with pytest.raises(RecordsError):
        count_records(
            memoryview(HEADER.pack(*header) + b"not of any codec"),
            header,
            CountingBudget(),
            TimestampClaim(header),
        )
