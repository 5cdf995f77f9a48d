"""Batches of a member: in order, each once, whatever is answered."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from faircopy.client.outgoing import IN_FLIGHT_MAX, Outgoing, ProducerIdentity
from faircopy.wire.batch import read_header
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import NewRecord, decode_records
from tests.many import many


class OneLog:
    """A partition that takes each batch once, in order of its sequence numbers."""

    def __init__(self) -> None:
        self.values: list[bytes] = []

    def take(self, payload: bytes | bytearray) -> int:
        header = read_header(payload)
        if header.base_sequence < len(self.values):
            return ErrorCode.DUPLICATE_SEQUENCE_NUMBER
        if header.base_sequence > len(self.values):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        self.values += [record.value or b"" for record in decode_records(payload)]
        return ErrorCode.NONE


FATES = st.sampled_from(["arrives", "arrives", "answer is lost", "is lost"])


@given(many(st.integers(1, 4), 20), st.lists(FATES, min_size=400, max_size=400))
def test_everything_arrives_once_and_in_order(sizes: list[int], fates: list[str]) -> None:
    log, outgoing, fate = OneLog(), Outgoing(ProducerIdentity(7, 0)), iter(fates)
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


def test_a_gap_before_anything_else_is_final() -> None:
    """The broker has forgotten what came before: that is not a matter of order."""
    outgoing = Outgoing(ProducerIdentity(7, 0))
    outgoing.add(NewRecord(b"value"))
    outgoing.seal()
    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert outgoing.take(outgoing.window(), [code]) is code
