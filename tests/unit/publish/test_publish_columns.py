"""Columns made by Arrow's kernels are those that a loop over the records would make, poison included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.publish import fields, headers, record_run
from faircopy.publish.columns import decode
from faircopy.publish.headers import HEADERS_AT_MOST, MANY_ROWS
from faircopy.publish.schema import SCHEMA
from faircopy.wire.batch import HEADER, HEADER_BYTES, read_header
from faircopy.wire.records import NewRecord, build_batch, varint, with_crc
from tests.unit.publish.publish_oracle import (
    POISON,
    Row,
    body,
    logged,
    loop_over,
    message_lists,
    recompressed,
    with_section,
)

GOOD = [NewRecord(b"value %d" % i, b"key", 1000 + i, (("h", b"x"),) * (i % 3)) for i in range(10)]


@pytest.fixture(autouse=True, scope="module", params=[1, 1_000], ids=["in rounds", "one by one"])
def _both_ways(request: pytest.FixtureRequest) -> Iterator[None]:
    """Headers are read in rounds, and those of few records one by one."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(headers, "MANY_ROWS", request.param)
        yield


def rows(log: bytes, first_offset: int = 0, **options: Any) -> list[Row]:
    decoded = list(decode(logged(log, options.pop("txids", ()), first_offset), **options))
    batches = [batch for batch, _ in decoded]
    for batch, slices in decoded:
        batch.validate(full=True)
        assert batch.schema == SCHEMA
        assert slices == [("orders", 3, batch.num_rows)]
    found: list[Row] = pa.Table.from_batches(batches, SCHEMA).to_pylist()
    for row in found:
        assert (row.pop("topic"), row.pop("partition")) == ("orders", 3)
    return found


def expected(log: bytes, first_offset: int = 0, txids: Any = ()) -> list[Row]:
    return [row for batch in logged(log, txids) for row in loop_over(batch, first_offset)]


def end_to_end(*parts: bytes) -> bytes:
    """Batches with the offsets that a log gives them."""
    log, offset = b"", 0
    for part in parts:
        log += with_crc(HEADER.pack(*read_header(part)._replace(base_offset=offset)) + part[HEADER_BYTES:])
        offset += read_header(part).records
    return log


@given(st.lists(st.tuples(message_lists, st.integers(0, 4)), min_size=1, max_size=6), st.integers(0, 100))
def test_good_batches_of_every_codec(listed: list[tuple[list[NewRecord], int]], first_offset: int) -> None:
    log = end_to_end(*(recompressed(build_batch(messages), codec) for messages, codec in listed))
    found = rows(log, first_offset)
    assert found == expected(log, first_offset)
    assert len(found) == max(0, sum(len(messages) for messages, _ in listed) - first_offset)


@pytest.mark.parametrize("codec", [0, 4])
@pytest.mark.parametrize("name", POISON)
def test_poison_between_good_batches(name: str, codec: int) -> None:
    good = build_batch(GOOD)
    poisoned = recompressed(with_section(good, POISON[name]), codec)
    log = end_to_end(good, poisoned, good)
    assert rows(log) == expected(log)
    assert len(rows(log)) == 20


@pytest.mark.parametrize("name", POISON)
def test_poison_after_and_before_good_records_of_one_batch(name: str) -> None:
    good = build_batch(GOOD)
    section = good[HEADER_BYTES:]
    log = end_to_end(with_section(good, section + POISON[name] + section, records=30), good)
    assert rows(log) == expected(log)
    assert len(rows(log)) == 20


def test_a_bad_record_between_good_ones_is_left_out_alone() -> None:
    bad = body(b"\0\0\2", b"\1", b"\1", b"\2", b"\1\1")  # a header whose key is null
    records = [build_batch([NewRecord(b"v")] * n)[HEADER_BYTES:] for n in (1, 3)]
    third = records[1][2 * len(records[0]) :]
    log = with_section(build_batch([NewRecord(b"v")]), records[0] + bad + third, records=3)
    assert [row["offset"] for row in rows(log)] == [0, 2]


@pytest.mark.parametrize("codec", range(8))
def test_sections_that_do_not_decompress(codec: int) -> None:
    good = build_batch(GOOD)
    log = end_to_end(good, with_section(good, b"not of any codec" * 9, attributes=codec), good)
    assert [row["offset"] for row in rows(log)] == [*range(10), *range(20, 30)]


def test_a_batch_beyond_the_limit_is_left_out() -> None:
    good, large = build_batch(GOOD), build_batch([NewRecord(bytes(10_000))])
    log = end_to_end(good, recompressed(large, 4), good)
    assert [row["offset"] for row in rows(log, limit_bytes=5000)] == [*range(10), *range(11, 21)]


@pytest.mark.parametrize("records", [2**31 - 1, 0, -1])
def test_counts_that_lie(records: int) -> None:
    log = with_section(build_batch(GOOD), build_batch(GOOD)[HEADER_BYTES:], records=records)
    assert len(rows(log)) == (10 if records > 0 else 0)


@given(st.data())
def test_garbage_gives_what_the_loop_gives(data: st.DataObject) -> None:
    log = bytearray(end_to_end(build_batch(data.draw(message_lists)), build_batch(GOOD)))
    first = read_header(log).size_bytes
    for at in data.draw(st.lists(st.integers(HEADER_BYTES, first - 1), min_size=1, max_size=5)):
        log[at] = data.draw(st.integers(0, 255))
    assert rows(bytes(log)) == expected(bytes(log))


@given(st.binary(max_size=300), st.integers(1, 40))
def test_noise_gives_what_the_loop_gives(noise: bytes, records: int) -> None:
    log = end_to_end(with_section(build_batch(GOOD), noise, records=records), build_batch(GOOD))
    assert rows(log) == expected(log)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1), st.booleans())
def test_timestamps_stay_within_what_spark_can_show(base: int, newest: int, stamped: bool) -> None:
    good = build_batch(GOOD, append_time_ms=5 if stamped else None)
    header = read_header(good)._replace(base_timestamp_ms=base, max_timestamp_ms=newest)
    log = HEADER.pack(*header) + good[HEADER_BYTES:]
    assert rows(log) == expected(log)


def test_transactions() -> None:
    log = end_to_end(*[build_batch(GOOD)] * 3)
    found = rows(log, txids=["7.0.1", None, "7.0.2"])
    assert [row["txid"] for row in found] == ["7.0.1"] * 10 + [None] * 10 + ["7.0.2"] * 10


@pytest.fixture
def _usual_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers, "MANY_ROWS", MANY_ROWS)


@pytest.mark.parametrize("count", [10_001, 50_000])
@pytest.mark.usefixtures("_usual_way")
def test_no_record_has_too_many_headers(count: int) -> None:
    many = tuple((f"h{number % 70}", b"x" * (number % 3) if number % 5 else None) for number in range(count))
    log = end_to_end(build_batch(GOOD), build_batch([*GOOD, NewRecord(b"many", headers=many), *GOOD]))
    found = rows(log)
    assert found == expected(log)
    assert len(found[20]["headers"]) == count


@pytest.mark.usefixtures("_usual_way")
def test_as_many_headers_as_there_is_room_for() -> None:
    """A larger record could claim more; but for these, memory is bounded."""
    smallest = b"\0\1"
    for count, is_read in ((HEADERS_AT_MOST, True), (HEADERS_AT_MOST + 1, False)):
        record = body(b"\0\0\0", b"\1", b"\1", varint(count), smallest * count)
        (batch,) = [each for each, _ in decode(logged(with_section(build_batch(GOOD[:1]), record)))] or [None]
        assert (batch is not None) == is_read
        if batch is not None:
            assert pc.list_value_length(batch.column("headers"))[0].as_py() == count


@pytest.mark.parametrize("size", [0, 1, 63, 64, 127, 128, 8_191, 8_192, 1 << 20])
def test_headers_have_any_length(size: int) -> None:
    """Their lengths take one byte or more."""
    listed = (("k" * size, b"v"), ("k", b"v" * size), ("k" * size, None))
    log = end_to_end(build_batch([*GOOD, NewRecord(b"long", headers=listed), *GOOD]))
    found = rows(log)
    assert found == expected(log)
    assert [len(header["key"]) for header in found[len(GOOD)]["headers"]] == [size, 1, size]


def test_header_keys_that_are_not_utf8() -> None:
    log = build_batch(GOOD).replace(b"\2h\2x", b"\2\xff\2x")
    assert rows(log) == expected(log)
    assert rows(log)[1]["headers"] == [{"key": "\ufffd", "value": b"x"}]


@given(listed=st.lists(message_lists, min_size=1, max_size=5))
def test_runs_end_anywhere(listed: list[list[NewRecord]]) -> None:
    log = end_to_end(*(build_batch(messages) for messages in listed))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(record_run, "RUN_BYTES", 64)
        patched.setattr(record_run, "ROWS_AT_MOST", 7)
        assert rows(log) == expected(log)


def test_a_small_batch_that_holds_very_much_comes_in_pieces() -> None:
    record_bytes = 300_000
    good = build_batch([NewRecord(bytes(record_bytes)) for _ in range(100)])
    log = recompressed(good, 4)
    assert len(log) < 40_000
    pieces = [batch for batch, _ in decode(logged(log))]
    assert sum(piece.num_rows for piece in pieces) == 100
    assert max(piece.nbytes for piece in pieces) < 2 * record_run.RUN_BYTES


def test_a_record_larger_than_a_run() -> None:
    listed = [NewRecord(b"a"), NewRecord(bytes(record_run.RUN_BYTES + 5)), NewRecord(b"b")]
    log = build_batch(listed)
    assert [row["value"] for row in rows(log)] == [message.value for message in listed]


def test_full_runs_of_the_smallest_records() -> None:
    listed = [NewRecord(None)] * (fields.ROWS_AT_MOST + 100)
    log = end_to_end(build_batch(listed), build_batch(GOOD))
    assert [row["offset"] for row in rows(log)] == list(range(len(listed) + 10))


def test_a_large_batch_after_a_run_that_is_almost_full() -> None:
    first = build_batch([NewRecord(None)] * (fields.ROWS_AT_MOST - 10))
    second = recompressed(build_batch([NewRecord(bytes(9000))] * 1000), 4)
    log = end_to_end(first, second)
    assert [row["offset"] for row in rows(log)] == list(range(fields.ROWS_AT_MOST + 990))
