"""The byte layout of entries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.journal.entry import (
    HEADER_BYTES,
    BadEntry,
    Entry,
    Kind,
    TransactionId,
    check,
    decode_header,
    encode_header,
)

INT64 = st.integers(-(2**63), 2**63 - 1)
POSITION = st.integers(0, 2**63 - 1)
SEED = st.integers(0, 2**32 - 1)
PAYLOAD = st.binary(max_size=300)


@st.composite
def entries(draw: st.DrawFn) -> tuple[Entry, bytes]:
    payload = draw(PAYLOAD)
    transaction = TransactionId(draw(INT64), draw(st.integers(-(2**15), 2**15 - 1)), draw(INT64))
    entry = Entry(
        kind=draw(st.sampled_from(Kind)),
        position=draw(POSITION),
        length=HEADER_BYTES + len(payload),
        records=draw(st.integers(0, 2**32 - 1)),
        leader_epoch=draw(st.integers(-(2**31), 2**31 - 1)),
        previous=draw(INT64),
        transaction=transaction,
        durable=draw(POSITION),
    )
    return entry, payload


@given(entries(), SEED)
def test_what_is_encoded_is_decoded(made: tuple[Entry, bytes], seed: int) -> None:
    entry, payload = made
    data = encode_header(entry, payload, seed) + payload
    assert len(data) == entry.length
    assert decode_header(data, 0, entry.position) == entry
    check(data, 0, entry.length, seed)


@given(entries(), SEED, st.data())
def test_every_flipped_bit_is_noticed(made: tuple[Entry, bytes], seed: int, data: st.DataObject) -> None:
    entry, payload = made
    encoded = bytearray(encode_header(entry, payload, seed) + payload)
    bit = data.draw(st.integers(0, len(encoded) * 8 - 1))
    encoded[bit // 8] ^= 1 << bit % 8
    with pytest.raises(BadEntry):
        decoded = decode_header(bytes(encoded), 0, entry.position)
        check(bytes(encoded), 0, decoded.length, seed)


@given(entries(), SEED, POSITION)
def test_an_entry_elsewhere_is_not_taken_for_one(made: tuple[Entry, bytes], seed: int, elsewhere: int) -> None:
    entry, payload = made
    data = encode_header(entry, payload, seed) + payload
    if elsewhere != entry.position:
        with pytest.raises(BadEntry):
            decode_header(data, 0, elsewhere)


@given(entries(), SEED, SEED)
def test_an_entry_of_another_segment_does_not_fit(made: tuple[Entry, bytes], seed: int, other: int) -> None:
    entry, payload = made
    data = encode_header(entry, payload, seed) + payload
    if other != seed:
        with pytest.raises(BadEntry):
            check(data, 0, entry.length, other)


@given(entries(), SEED, st.data())
def test_a_torn_entry_is_noticed(made: tuple[Entry, bytes], seed: int, data: st.DataObject) -> None:
    entry, payload = made
    encoded = encode_header(entry, payload, seed) + payload
    torn = encoded[: data.draw(st.integers(0, len(encoded) - 1))]
    with pytest.raises(BadEntry):
        decoded = decode_header(torn, 0, entry.position)
        check(torn, 0, decoded.length, seed)
