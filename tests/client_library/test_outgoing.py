"""Batches of a member: in order, each once, whatever is answered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.client.codecs import CODECS
from faircopy.client.division import divided, in_compression
from faircopy.client.outgoing import IN_FLIGHT_MAX, Outgoing, ProducerIdentity
from faircopy.wire.batch import read_header
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import NewRecord, build_batch, decode_records
from tests.many import many


class OneLog:
    """A partition that takes each batch once, in order of its sequence numbers, if it is not too large."""

    def __init__(self, bytes_max: int = 1 << 20) -> None:
        self.values: list[bytes] = []
        self._bytes_max = bytes_max

    def take(self, payload: bytes | bytearray) -> int:
        header = read_header(payload)
        if len(payload) > self._bytes_max:
            return ErrorCode.MESSAGE_TOO_LARGE
        if header.base_sequence < len(self.values):
            return ErrorCode.DUPLICATE_SEQUENCE_NUMBER
        if header.base_sequence > len(self.values):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        self.values += [record.value or b"" for record in decode_records(payload)]
        return ErrorCode.NONE


FATES = st.sampled_from(["arrives", "arrives", "answer is lost", "is lost"])


@given(
    many(st.integers(1, 9), 20), st.lists(FATES, min_size=400, max_size=400), st.sampled_from([80, 99, 999])
)
def test_everything_arrives_once_and_in_order(sizes: list[int], fates: list[str], bytes_max: int) -> None:
    log, outgoing, fate = OneLog(bytes_max), Outgoing(ProducerIdentity(7, 0)), iter(fates)
    expected: list[bytes] = []
    for size in sizes:
        for _ in range(size):
            expected.append(b"%d" % len(expected))
            outgoing.add(NewRecord(expected[-1]))
        outgoing.seal()
    while outgoing.batches:
        window = outgoing.window()
        assert len(window) <= IN_FLIGHT_MAX
        codes: list[int | None] = []
        for batch in window:
            what = next(fate, "arrives")
            code = None if what == "is lost" else log.take(batch.payload)
            codes.append(code if what == "arrives" else None)
        assert outgoing.take(window, codes) is None
    assert log.values == expected
    assert outgoing.bytes == 0


def test_a_refusal_is_told() -> None:
    outgoing = Outgoing(ProducerIdentity(7, 0))
    outgoing.add(NewRecord(b"too large"))
    outgoing.seal()
    assert outgoing.take(outgoing.window(), [ErrorCode.MESSAGE_TOO_LARGE]) is ErrorCode.MESSAGE_TOO_LARGE
    assert outgoing.bytes > 0


def test_the_record_that_is_too_large_is_named() -> None:
    """And those before it are written."""
    log, outgoing = OneLog(bytes_max=300), Outgoing(ProducerIdentity(7, 0))
    records = [NewRecord(bytes(500) if number == 13 else b"%d" % number) for number in range(20)]
    outgoing.add_batch(
        len(records), lambda producer, sequence: encoded(records, producer, sequence), lambda *ends: f"{ends}"
    )
    error = None
    while error is None:
        window = outgoing.window()
        error = outgoing.take(window, [log.take(batch.payload) for batch in window])
    assert error is ErrorCode.MESSAGE_TOO_LARGE
    assert next(batch.place for batch in window if not batch.is_written) == "(13, 13)"
    assert log.values == [b"%d" % number for number in range(13)]


def encoded(records: list[NewRecord], producer: ProducerIdentity, sequence: int) -> bytes:
    return build_batch(
        records,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=sequence,
        transactional=True,
    )


@pytest.mark.parametrize("codec", CODECS.values())
def test_a_divided_batch_has_the_same_records(codec: int) -> None:
    headers = (("h", b"x"), ("null", None))
    records = [
        NewRecord(b"v" * 100, None, 1_000 + n, headers) if n % 2 else NewRecord(None, b"k") for n in range(9)
    ]
    whole = encoded(records, ProducerIdentity(7, 3), (1 << 31) - 2)
    batch = in_compression(whole, codec)
    parts = divided(batch, 4)
    assert [record._replace(offset=0) for part in parts for record in decode_records(part)] == [
        record._replace(offset=0) for record in decode_records(whole)
    ]
    first, second = map(read_header, parts)
    assert (first.base_sequence, second.base_sequence) == ((1 << 31) - 2, 2)
    for header in (first, second):
        assert header.attributes == read_header(batch).attributes
        assert (header.producer_id, header.producer_epoch) == (7, 3)


def test_a_gap_before_anything_else_is_final() -> None:
    """The broker has forgotten what came before: that is not a matter of order."""
    outgoing = Outgoing(ProducerIdentity(7, 0))
    outgoing.add(NewRecord(b"value"))
    outgoing.seal()
    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert outgoing.take(outgoing.window(), [code]) is code
