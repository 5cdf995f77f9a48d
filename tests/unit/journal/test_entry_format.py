"""The byte layout of entries: round trips, flips, torn ones, and headers found at any byte."""

from __future__ import annotations

import struct
import time

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from faircopy.journal.entry import HEADER_BYTES, BadEntry, Entry, Kind, TransactionId
from faircopy.journal.entry_format import (
    LOW_BITS,
    PAYLOAD_CRC_AT,
    POSITION_AT,
    check,
    decode_header,
    encode_header,
    find_headers,
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
    assert decode_header(data, 0, entry.position, seed) == entry
    check(data, 0, entry.length, seed)


@given(entries(), SEED, st.data())
def test_every_flipped_bit_is_noticed(made: tuple[Entry, bytes], seed: int, data: st.DataObject) -> None:
    entry, payload = made
    encoded = bytearray(encode_header(entry, payload, seed) + payload)
    flip_a_bit(encoded, data)
    with pytest.raises(BadEntry):
        decoded = decode_header(bytes(encoded), 0, entry.position, seed)
        check(bytes(encoded), 0, decoded.length, seed)


def flip_a_bit(encoded: bytearray, data: st.DataObject) -> None:
    """In the header as often as in the payload, which most times is much shorter."""
    in_header, in_payload = range(HEADER_BYTES), range(HEADER_BYTES, len(encoded))
    byte = data.draw(st.sampled_from(data.draw(st.sampled_from([in_header, in_payload or in_header]))))
    encoded[byte] ^= 1 << data.draw(st.integers(0, 7))


@given(entries(), SEED, POSITION)
def test_an_entry_elsewhere_is_not_taken_for_one(
    made: tuple[Entry, bytes], seed: int, elsewhere: int
) -> None:
    entry, payload = made
    data = encode_header(entry, payload, seed) + payload
    if elsewhere != entry.position:
        with pytest.raises(BadEntry):
            decode_header(data, 0, elsewhere, seed)


@given(entries(), SEED, SEED)
def test_an_entry_of_another_segment_does_not_fit(made: tuple[Entry, bytes], seed: int, other: int) -> None:
    entry, payload = made
    data = encode_header(entry, payload, seed) + payload
    if other != seed:
        with pytest.raises(BadEntry):
            check(data, 0, entry.length, other)
        with pytest.raises(BadEntry):
            decode_header(data, 0, entry.position, other)


@given(entries(), SEED, st.data())
def test_a_torn_entry_is_noticed(made: tuple[Entry, bytes], seed: int, data: st.DataObject) -> None:
    entry, payload = made
    encoded = encode_header(entry, payload, seed) + payload
    lost = data.draw(st.integers(1, len(payload) or 1) | st.integers(1, len(encoded)))
    torn = encoded[:-lost]
    with pytest.raises(BadEntry):
        decoded = decode_header(torn, 0, entry.position, seed)
        check(torn, 0, decoded.length, seed)


@given(entries(), SEED, SEED, POSITION)
def test_another_replica_writes_the_same_payload_below_a_header_of_its_own(
    made: tuple[Entry, bytes], seed: int, other: int, durable: int
) -> None:
    """With the CRC that it was sent: the payload's part of the checksum is the same in every replica."""
    entry, payload = made
    sent = encode_header(entry, payload, seed)
    (payload_crc,) = struct.unpack_from("<I", sent, PAYLOAD_CRC_AT)
    own = entry._replace(durable=durable)
    data = encode_header(own, payload, other, payload_crc) + payload
    assert data == encode_header(own, payload, other) + payload
    check(data, 0, entry.length, other)
    assert decode_header(data, 0, entry.position, other) == own


@given(entries(), SEED, st.data())
def test_a_payload_that_does_not_fit_the_crc_it_came_with_is_noticed(
    made: tuple[Entry, bytes], seed: int, data: st.DataObject
) -> None:
    entry, payload = made
    wrong = data.draw(st.integers(0, 2**32 - 1).filter(lambda crc: crc != crc32c(payload)))
    with pytest.raises(BadEntry):
        check(encode_header(entry, payload, seed, wrong) + payload, 0, entry.length, seed)


# -- headers at any byte -------------------------------------------------------------------------------------

NEAR_BLOCKS = st.builds(
    lambda block, more: max((block << LOW_BITS) + more, 0), st.integers(0, 1 << 45), st.integers(-300, 300)
)
NOISE = st.binary(max_size=200) | st.integers(0, 200).map(bytes)
NUMBER = st.integers(-1, 1)
"""Numbers of transactions. Other than that of -1, the headers of 0 and 1 end with zeros."""


def header_at(position: int, seed: int, number: int = -1) -> bytes:
    entry = Entry(Kind.PLAIN, position, HEADER_BYTES, 0, 1, -1, TransactionId(-1, -1, number), 0)
    return encode_header(entry, b"", seed)


@given(NEAR_BLOCKS | st.integers(0, 1 << 17), SEED, st.lists(NOISE | NUMBER, max_size=8))
def test_headers_are_found_wherever_they_begin(position: int, seed: int, parts: list[bytes | int]) -> None:
    """A number stands for the header of its transaction; also across the places where the high bytes of
    positions change.
    """
    piece, expected = b"", []
    for part in parts:
        if isinstance(part, int):
            expected.append(position + len(piece))
        piece += header_at(position + len(piece), seed, part) if isinstance(part, int) else part
    assert list(find_headers(piece, position, seed)) == expected


@given(st.integers(0, 1 << 20), SEED)
def test_a_header_that_is_cut_short_is_none(position: int, seed: int) -> None:
    whole = b"x" + header_at(position + 1, seed)
    assert list(find_headers(whole, position, seed)) == [position + 1]
    assert list(find_headers(whole[:-1], position, seed)) == []


@given(st.integers(0, 1 << 40), SEED, SEED)
def test_who_does_not_know_the_salt_forges_no_header(position: int, seed: int, guess: int) -> None:
    piece = b"".join(header_at(position + at, guess) for at in range(0, 20 * HEADER_BYTES, HEADER_BYTES))
    assert bool(list(find_headers(piece, position, seed))) == (guess == seed)


@pytest.mark.parametrize("position", [0, 5, 0x123456, 0x0101_0101_0101_0101])
@pytest.mark.parametrize("kind", ["zeros", "positions", "high bytes"])
def test_what_looks_like_headers_costs_little(position: int, kind: str) -> None:
    """A client may fill its messages with what a search takes for a header, and zeros are reserved space."""
    size = 1 << 20
    if kind == "zeros":
        piece = bytes(size)
    elif kind == "positions":
        piece = b"".join(
            max(position + at - POSITION_AT, 0).to_bytes(8, "little") for at in range(0, size, 8)
        )
    else:
        piece = (position >> LOW_BITS).to_bytes(8 - LOW_BITS // 8, "little") * (size // 6)
    began = time.process_time()
    assert list(find_headers(piece, position, 1)) == []
    assert time.process_time() - began < 2
