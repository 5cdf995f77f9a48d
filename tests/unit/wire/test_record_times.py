"""Searches by time find what reading all records would find."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.wire.batch import HEADER_BYTES, read_header, with_log_append_time
from faircopy.wire.compression import RecordsError
from faircopy.wire.record_times import find_greatest_time, find_record_by_time
from faircopy.wire.records import NewRecord, build_batch, decode_records

times = st.integers(0, 200) | st.integers(-(2**62), 2**62) | st.integers(2**34, 2**36)
messages = st.builds(NewRecord, value=st.binary(max_size=300), timestamp_ms=times)


@given(
    listed=st.lists(messages, min_size=1, max_size=30),
    asked=times,
    first=st.integers(0, 35),
    stamped=st.booleans(),
)
def test_the_first_of_a_time_and_of_the_greatest(
    listed: list[NewRecord], asked: int, first: int, stamped: bool
) -> None:
    batch = build_batch(listed)
    if stamped:
        batch = bytes(with_log_append_time(memoryview(batch), 77))
    section, header = batch[HEADER_BYTES:], read_header(batch)
    left = list(enumerate(record.timestamp_ms for record in decode_records(batch)))[first:]
    expected = next(((number, time_ms) for number, time_ms in left if time_ms >= asked), None)
    assert find_record_by_time(section, header, first, asked) == expected
    greatest = max(left, key=lambda record: (record[1], -record[0]), default=None)
    assert find_greatest_time(section, header, first) == greatest


@given(section=st.binary(max_size=100), records=st.integers(1, 40), asked=times)
def test_garbage_raises_nothing_else(section: bytes, records: int, asked: int) -> None:
    header = read_header(build_batch([NewRecord(b"")]))._replace(records=records)
    try:
        found = find_record_by_time(section, header, 0, asked)
    except RecordsError:
        return
    assert found is None or 0 <= found[0] < records


def test_what_is_cut_short_is_refused() -> None:
    batch = build_batch([NewRecord(b"value", timestamp_ms=1)] * 3)
    for end in range(HEADER_BYTES, len(batch)):
        with pytest.raises(RecordsError):
            find_record_by_time(batch[HEADER_BYTES:end], read_header(batch), 0, 2)
