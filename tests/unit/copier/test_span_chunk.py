"""Chunks of spans, as bytes."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.copier.span_chunk import (
    CHUNK_SPANS_MAX,
    BadChunk,
    Span,
    decode_chunk,
    encode_chunk,
)
from faircopy.journal.entry import TransactionId

IDENTITY = bytes(20)
numbers = st.integers(-1, 2**63 - 1)
offsets = st.integers(0, 2**63 - 1)
transactions = st.builds(TransactionId, numbers, st.integers(-1, 2**15 - 1), numbers)
spans = st.builds(Span, offsets, offsets, numbers, transactions)


@given(st.lists(spans, min_size=1, max_size=20))
def test_what_is_written_is_read(chunk: list[Span]) -> None:
    assert decode_chunk(encode_chunk(chunk)) == chunk


@given(st.binary(max_size=60))
def test_other_bytes_are_refused_or_read(value: bytes) -> None:
    with contextlib.suppress(BadChunk):
        decode_chunk(value)


def test_a_chunk_that_lacks_bytes_is_refused() -> None:
    chunk = encode_chunk([Span(0, 1, 2, TransactionId(3, 4, 5))] * 2)
    for value in (b"", chunk[:2], chunk[:-6], b"\xff\x00\x03" + chunk[3:], b"\xff\x00\x01" + chunk[3:]):
        with pytest.raises(BadChunk):
            decode_chunk(value)


def test_small_transactions_cost_little() -> None:
    chunk = [
        Span(10**9 + number, 10**9 + number, (7 << 40) + number, TransactionId(1000 + number % 8, 0, number))
        for number in range(CHUNK_SPANS_MAX)
    ]
    assert len(encode_chunk(chunk)) < 16 * CHUNK_SPANS_MAX
